mod csv;
mod generator;
mod sizes;
