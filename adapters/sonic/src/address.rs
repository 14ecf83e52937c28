//! The address of Redis.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// The address of Redis: `unix:/PATH` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of the file system, like the processes of a switch use.
    Unix(PathBuf),
    /// A host and a port; IPv6 addresses without brackets.
    Tcp(String, u16),
}

const UNIX: &str = "unix:";

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        let wrong = || Error::Address(text.to_owned());
        if let Some(path) = text.strip_prefix(UNIX) {
            return match path.starts_with('/') {
                true => Ok(Address::Unix(PathBuf::from(path))),
                false => Err(wrong()),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let valid = match bracketed {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(is_name),
        };
        match valid && port > 0 {
            true => Ok(Address::Tcp(host.to_owned(), port)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{UNIX}{}", path.display()),
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in [
            "unix:/var/run/redis/redis.sock",
            "127.0.0.1:6379",
            "switch-1.lab:6380",
            "[::1]:6379",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        let local = "[::1]:6379".parse::<Address>().unwrap();
        assert_eq!(local, Address::Tcp("::1".to_owned(), 6379));
        for text in [
            "",
            "unix:redis.sock",
            "localhost",
            "localhost:",
            ":6379",
            "host:0",
            "host:70000",
            "redis://host:1",
            "::1:6379",
            "[host]:1",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("HOST:PORT"), "{text}: {error}");
        }
    }
}
