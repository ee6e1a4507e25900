//! A proxy that leads to one server, whatever it is asked for.

#![allow(
    clippy::unwrap_used,
    reason = "this is test code, though no function here is a test"
)]

use std::io::{BufRead, BufReader, Write, copy};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::hub::Server;

/// A proxy for `CONNECT`. It serves until the test ends.
pub(crate) struct Proxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Every connection through it goes to `server`.
    pub(crate) fn to(server: &Server) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = server.url()["http://".len()..].to_owned();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (server, log) = (server.clone(), Arc::clone(&log));
                // An error means that one side has gone.
                std::thread::spawn(move || tunnel(stream, &server, &log));
            }
        });
        Self { url, asked }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The hosts and ports that connections were asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn tunnel(stream: TcpStream, server: &str, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    if words.next() != Some("CONNECT") {
        return (&stream).write_all(b"HTTP/1.1 405 Only CONNECT\r\nContent-Length: 0\r\n\r\n");
    }
    log.lock().unwrap().push(words.next().unwrap().to_owned());
    while line.trim_end() != "" {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let to = TcpStream::connect(server)?;
    (&stream).write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (mut from, mut back) = (to.try_clone()?, stream.try_clone()?);
    let answers = std::thread::spawn(move || {
        let _ = copy(&mut from, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let _ = copy(&mut reader, &mut &to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = answers.join();
    Ok(())
}
