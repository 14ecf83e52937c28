mod csv;
mod generator;
mod pcap;
mod queries;
