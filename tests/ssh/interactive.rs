//! What a person is asked at a login: the server's own questions, and passwords.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bringup::domain::link::LinkErrorKind;
use bringup::domain::question::Ask;
use bringup::ssh::{Reply, Session};
use russh::MethodKind::{KeyboardInteractive, Password, PublicKey};
use secrecy::SecretString;

use crate::logins::{Slow, works};
use crate::person::{Home, NODE, Person};
use crate::server::{Door, Round, Server};

/// Answers what logins ask with these, one after the other, and trusts every host.
fn answers(texts: &'static [&'static str]) -> Arc<Person> {
    let given = AtomicUsize::new(0);
    Person::new(move |ask, _| {
        Some(match ask {
            Ask::HostKey { .. } => Reply::Yes,
            Ask::Passphrase { .. } => Reply::No,
            Ask::Login { .. } => match texts.get(given.fetch_add(1, Ordering::Relaxed)) {
                Some(text) => Reply::Secret(SecretString::from(*text)),
                None => Reply::No,
            },
        })
    })
}

/// Prompt, echo, place in its round, words beside it, whether an answer was refused before.
type Asked = (String, bool, (usize, usize), String, bool);

fn asked(person: &Person) -> Vec<Asked> {
    let login = |ask| match ask {
        Ask::Login {
            account: _,
            said,
            prompt,
            echo,
            number,
            of,
            again,
        } => Some((prompt, echo, (number, of), said, again)),
        Ask::HostKey { .. } | Ask::Passphrase { .. } => None,
    };
    person.asks().into_iter().filter_map(login).collect()
}

fn prompts(person: &Person) -> Vec<String> {
    asked(person).into_iter().map(|a| a.0).collect()
}

fn again(person: &Person) -> Vec<bool> {
    asked(person).into_iter().map(|a| a.4).collect()
}

fn round(prompts: &[(&str, bool)], answers: &[&'static str]) -> Round {
    Round {
        words: "",
        prompts: prompts.iter().map(|(p, echo)| ((*p).to_owned(), *echo)).collect(),
        answers: answers.to_vec(),
    }
}

fn server(home: &Home, door: Door) -> Arc<Server> {
    let server = Server::new(&[&home.key]);
    *server.door.lock().unwrap() = door;
    server
}

fn code_after_key() -> Door {
    Door {
        methods: vec![PublicKey],
        then: vec![KeyboardInteractive],
        rounds: vec![round(&[("Verification code: ", false)], &["123456"])],
        password: "",
    }
}

fn password() -> Door {
    Door {
        methods: vec![Password],
        password: "right",
        ..Door::default()
    }
}

#[tokio::test]
async fn each_question_comes_with_its_text_and_its_echo_round_by_round() {
    let home = Home::new();
    let mut first = round(&[("Name: ", true), ("Password: ", false)], &["aurora", "right"]);
    first.words = "Welcome to\nthe gate";
    let words_only = Round {
        words: "Look at your phone",
        ..Round::default()
    };
    let code = round(&[("Code: ", true)], &["7"]);
    let door = Door {
        methods: vec![KeyboardInteractive],
        rounds: vec![first, words_only, code],
        ..Door::default()
    };
    let server = server(&home, door);
    let person = answers(&["aurora", "right", "7"]);
    let target = home.target(server.listen().await);
    works(&home.connect(&target, &person).await.unwrap()).await;
    let expected = [
        ("Name:", true, (1, 2), "Welcome to the gate"),
        ("Password:", false, (2, 2), "Welcome to the gate"),
        ("Code:", true, (1, 1), "Look at your phone"),
    ];
    let expected: Vec<Asked> = expected
        .map(|(prompt, echo, place, words)| (prompt.to_owned(), echo, place, words.to_owned(), false))
        .to_vec();
    assert_eq!(asked(&person), expected);
    assert_eq!(*server.given.lock().unwrap(), ["aurora", "right", "7"]);
}

#[tokio::test]
async fn a_question_cannot_write_to_the_terminal_nor_fill_the_screen() {
    let home = Home::new();
    let nasty = format!("\u{1b}]0;title\u{7}\u{202e}drow{}", "x".repeat(5000));
    let door = Door {
        methods: vec![KeyboardInteractive],
        rounds: vec![round(&[(&nasty, false)], &["a"])],
        ..Door::default()
    };
    let server = server(&home, door);
    let person = answers(&["a"]);
    let target = home.target(server.listen().await);
    works(&home.connect(&target, &person).await.unwrap()).await;
    let prompt = prompts(&person).pop().unwrap();
    assert!(prompt.starts_with("]0;title drowxxx"), "{prompt}");
    assert!(
        prompt.chars().count() <= 300 && !prompt.contains(char::is_control),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_key_and_then_a_code_and_the_code_is_asked_each_time() {
    let home = Home::new();
    let server = server(&home, code_after_key());
    let target = home.target(server.listen().await);
    let person = answers(&["000000", "123456", "123456"]);
    works(&home.connect(&target, &person).await.unwrap()).await;
    assert_eq!(again(&person), [false, true]);
    works(&home.connect(&target, &person).await.unwrap()).await;
    assert_eq!(again(&person), [false, true, false]);
}

#[tokio::test]
async fn a_password_among_the_questions_is_kept_and_the_code_beside_it_is_not() {
    let home = Home::new();
    let door = Door {
        methods: vec![KeyboardInteractive],
        rounds: vec![
            round(&[("Verification code: ", false)], &["1"]),
            round(&[("Password: ", false)], &["right"]),
        ],
        ..Door::default()
    };
    let server = server(&home, door);
    let target = home.target(server.listen().await);
    let person = answers(&["1", "right", "1"]);
    works(&home.connect(&target, &person).await.unwrap()).await;
    works(&home.connect(&target, &person).await.unwrap()).await;
    assert_eq!(
        prompts(&person),
        ["Verification code:", "Password:", "Verification code:"]
    );
}

#[tokio::test]
async fn a_password_is_asked_again_when_it_is_wrong_and_never_when_it_was_right() {
    let home = Home::new();
    let server = server(&home, password());
    let target = home.target(server.listen().await);
    let person = answers(&["wrong", "right", "newer"]);
    works(&home.connect(&target, &person).await.unwrap()).await;
    works(&home.connect(&target, &person).await.unwrap()).await;
    assert_eq!(again(&person), [false, true]);
    // It was changed on the server: what was kept is tried once, and the person has not been wrong yet.
    server.door.lock().unwrap().password = "newer";
    works(&home.connect(&target, &person).await.unwrap()).await;
    assert_eq!(again(&person), [false, true, false]);
    assert_eq!(
        *server.given.lock().unwrap(),
        ["wrong", "right", "right", "right", "newer"]
    );
}

#[tokio::test]
async fn three_wrong_passwords_are_enough_and_the_error_counts_them() {
    let home = Home::new();
    let server = server(&home, password());
    let target = home.target(server.listen().await);
    let person = answers(&["a", "b", "c", "right"]);
    let error = home.connect(&target, &person).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Refused);
    assert!(error.text.contains("it refused password 3 times"), "{}", error.text);
    assert_eq!(again(&person), [false, true, true]);
    // What is tried again by itself does not ask again; who wants another try is asked.
    let error = home.connect(&target, &person).await.err().unwrap();
    assert!(error.text.contains("its question was not answered"), "{}", error.text);
    assert_eq!(again(&person).len(), 3);
    home.settings.keyring.ask_again();
    works(&home.connect(&target, &person).await.unwrap()).await;
}

#[tokio::test]
async fn a_dismissed_question_leaves_the_login() {
    let home = Home::new();
    for door in [code_after_key(), password()] {
        let server = server(&home, door);
        let target = home.target(server.listen().await);
        let person = answers(&[]);
        let error = home.connect(&target, &person).await.err().unwrap();
        assert!(error.text.contains("its question was not answered"), "{}", error.text);
        let error = home.connect(&target, &person).await.err().unwrap();
        assert!(error.text.contains("its question was not answered"), "{}", error.text);
        assert_eq!(asked(&person).len(), 1);
    }
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_error_says_what_is_missing() {
    let mut home = Home::new();
    home.settings.interactive = false;
    let cases = [
        (
            password(),
            "it takes a password; bringup asks for that only on the screen",
        ),
        (
            code_after_key(),
            "it takes answers to its questions (keyboard-interactive); bringup asks for that only on the screen",
        ),
    ];
    for (door, expected) in cases {
        let server = server(&home, door);
        let port = server.listen().await;
        let known = format!("[127.0.0.1]:{port} {}\n", server.host_key().to_openssh().unwrap());
        std::fs::write(home.path("known_hosts"), known).unwrap();
        let person = answers(&["right"]);
        let error = home.connect(&home.target(port), &person).await.err().unwrap();
        assert!(error.text.contains(expected), "{}", error.text);
        assert!(person.asks().is_empty());
    }
}

#[tokio::test]
async fn methods_come_in_order_and_only_those_that_the_server_offers() {
    let home = Home::new();
    let all = Door {
        methods: vec![Password, KeyboardInteractive, PublicKey],
        rounds: vec![round(&[("Code: ", false)], &["7"])],
        ..password()
    };
    let other = Home::new();
    let server = server(&other, all);
    let target = home.target(server.listen().await);
    let person = answers(&["1", "2", "3", "wrong"]);
    let error = home.connect(&target, &person).await.err().unwrap();
    assert_eq!(prompts(&person), ["Code:", "Code:", "Code:", "password", "password"]);
    for part in [
        "it refused every key: tried ",
        "it refused keyboard-interactive 3 times",
        "it refused password",
    ] {
        assert!(error.text.contains(part), "{part} is not in {}", error.text);
    }
    // No key is offered to a server that has said that it takes none.
    let server = self::server(&home, password());
    let mut target = home.target(server.listen().await);
    target.keys.push(other.path("id").display().to_string());
    works(&home.connect(&target, &answers(&["right"])).await.unwrap()).await;
    assert_eq!(server.keys_offered.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_server_that_never_stops_asking_is_left() {
    let home = Home::new();
    let many = vec![("Again: ", false); 40];
    let cases = [
        (vec![round(&[("More: ", false)], &["x"]); 40], "it asked without end"),
        (vec![round(&many, &["x"])], "it asked too many questions at once"),
    ];
    for (rounds, expected) in cases {
        let door = Door {
            methods: vec![KeyboardInteractive],
            rounds,
            ..Door::default()
        };
        let server = server(&home, door);
        let target = home.target(server.listen().await);
        let person = Person::new(|ask, _| {
            Some(match ask {
                Ask::Login { .. } => Reply::Secret(SecretString::from("x")),
                Ask::HostKey { .. } | Ask::Passphrase { .. } => Reply::Yes,
            })
        });
        let error = home.connect(&target, &person).await.err().unwrap();
        assert!(error.text.contains(expected), "{}", error.text);
        assert!(asked(&person).len() <= 16);
    }
}

#[tokio::test]
async fn who_types_may_take_longer_than_any_limit() {
    let mut home = Home::new();
    home.settings.connect_limit = Duration::from_secs(2);
    for door in [code_after_key(), password()] {
        let server = server(&home, door);
        let target = home.target(server.listen().await);
        let slow = Arc::new(Slow(answers(if server.door.lock().unwrap().password.is_empty() {
            &["123456"]
        } else {
            &["right"]
        })));
        let session = Session::connect(&target, None, &home.settings, slow, NODE)
            .await
            .unwrap();
        works(&session).await;
    }
}

#[tokio::test]
async fn two_connections_to_one_login_ask_once() {
    let home = Home::new();
    let server = server(&home, password());
    let target = home.target(server.listen().await);
    let person = answers(&["right"]);
    // The key of the host is on file before the two start.
    works(&home.connect(&target, &person).await.unwrap()).await;
    home.settings.keyring.ask_again();
    let fresh = Home::new();
    let settings = bringup::ssh::Settings {
        keyring: fresh.settings.keyring.clone(),
        ..home.settings.clone()
    };
    let person = answers(&["right"]);
    let connect = || Session::connect(&target, None, &settings, Arc::clone(&person) as _, NODE);
    let (a, b) = tokio::join!(connect(), connect());
    works(&a.unwrap()).await;
    works(&b.unwrap()).await;
    assert_eq!(prompts(&person), ["password"]);
}
