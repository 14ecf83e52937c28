mod csv;
mod generator;
mod queries;
mod sizes;
