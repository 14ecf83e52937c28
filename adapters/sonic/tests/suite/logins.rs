//! Tests of servers that ask for a password, and of one that never answers.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use bufgym_sonic::profiles::{self, Restored};
use bufgym_sonic::{Address, Database, Databases, Error, Login};

use crate::server::Server;
use crate::switch::{dump, set};

fn login(user: Option<&str>, password: &str) -> Login {
    Login {
        user: user.map(str::to_owned),
        password: password.to_owned(),
    }
}

fn refusal(server: &Server, login: Option<&Login>) -> String {
    let error = Databases::connect_as(&server.address(), login)
        .err()
        .expect("a refusal");
    assert!(matches!(error, Error::Login { .. }), "{error}");
    assert!(error.is_input() && !error.is_disconnected(), "{error}");
    let text = error.to_string();
    assert!(text.contains(&server.address().to_string()), "{text}");
    assert!(!text.contains('\n') && !text.contains("s3cret"), "{text}");
    text
}

#[test]
fn a_password_is_given_and_a_wrong_one_is_told() {
    let right = login(None, "s3cret word");
    let Some(server) = Server::start_for(Some(&right), &["--requirepass", "s3cret word"]) else {
        return;
    };
    let mut databases = Databases::connect_as(&server.address(), Some(&right)).unwrap();
    set(
        &mut databases,
        Database::Config,
        "PORT|Ethernet0",
        "speed",
        "1",
    );
    databases.claim().unwrap();
    databases.reconnect().unwrap();
    assert_eq!(dump(&mut databases, Database::Config).len(), 1);

    let missing = refusal(&server, None);
    assert!(
        missing.contains("--redis-password-file") && missing.contains("asks for"),
        "{missing}"
    );
    let wrong = refusal(&server, Some(&login(None, "s3cret")));
    assert!(
        wrong.contains("refuses") && wrong.contains("BUFGYM_REDIS_PASSWORD"),
        "{wrong}"
    );
    let wrong = refusal(&server, Some(&login(Some("nobody"), "s3cret word")));
    assert!(wrong.contains("--redis-user"), "{wrong}");
    assert!(!format!("{right:?}").contains("s3cret"));
}

#[test]
fn a_password_that_nobody_asked_for_is_told() {
    let Some(server) = Server::start() else {
        return;
    };
    let needless = refusal(&server, Some(&login(None, "s3cret")));
    assert!(needless.contains("leave the password out"), "{needless}");
}

/// The user may use the commands that the agent needs, and no others.
#[test]
fn a_user_of_the_access_control_list_needs_few_rights() {
    let agent = login(Some("agent"), "s3cret");
    let user = "agent on >s3cret ~* -@all +select +client|setname +client|list +hget +hgetall +hmget +scan \
                +hset +del +watch +multi +exec";
    let options = [&["--user"][..], &user.split(' ').collect::<Vec<_>>()].concat();
    let Some(server) = Server::start_for(Some(&agent), &options) else {
        return;
    };
    let mut databases = Databases::connect_as(&server.address(), Some(&agent)).unwrap();
    databases.claim().unwrap();
    assert_eq!(
        profiles::restore(&mut databases).unwrap(),
        Restored::default()
    );
    set(
        &mut databases,
        Database::Config,
        "PORT|Ethernet0",
        "speed",
        "1",
    );
    databases.watch(&["PORT|Ethernet0".to_owned()]).unwrap();
    assert!(databases.commit("write", Vec::new(), Vec::new()).unwrap());
}

#[test]
fn a_server_that_says_nothing_is_named_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("silent.sock");
    let _silent = UnixListener::bind(&path).unwrap();
    let address = Address::Unix(path);
    let begin = Instant::now();
    let error = Databases::connect(&address).err().expect("no answer");
    assert!(begin.elapsed() < Duration::from_secs(8));
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    assert!(error.is_input() && error.is_disconnected());
    let text = error.to_string();
    for words in [
        &address.to_string(),
        "no answer within 5 s",
        "redis-cli ping",
    ] {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
}
