//! A Redis server for one test.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bufgym_sonic::{Address, Databases, Login};

/// The environment variable that makes a missing server an error.
const REQUIRED: &str = "BUFGYM_REQUIRE_REDIS";

/// A server that listens on a socket in its own folder, persists nothing and stops when this value is
/// dropped.
pub struct Server {
    process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server; `None` if there is no `redis-server`.
    pub fn start() -> Option<Server> {
        Server::start_for(None, &[])
    }

    /// Starts a server with additional options, which accepts this login.
    pub fn start_for(login: Option<&Login>, options: &[&str]) -> Option<Server> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("redis.sock");
        let process = Command::new("redis-server")
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ])
            .arg(&socket)
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = match process {
            Ok(process) => process,
            Err(error) => {
                assert!(
                    std::env::var_os(REQUIRED).is_none(),
                    "redis-server: {error}"
                );
                eprintln!("not tested: redis-server: {error}");
                return None;
            }
        };
        let server = Server { process, folder };
        let begin = Instant::now();
        while Databases::connect_as(&server.address(), login).is_err() {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "redis-server does not answer"
            );
            sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Sends a signal to the server, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let arguments = [format!("-{name}"), self.process.id().to_string()];
        assert!(
            Command::new("kill")
                .args(arguments)
                .status()
                .unwrap()
                .success()
        );
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// Returns the address of the server.
    pub fn address(&self) -> Address {
        Address::Unix(self.socket())
    }

    /// Opens a connection.
    pub fn connect(&self) -> Databases {
        Databases::connect(&self.address()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
