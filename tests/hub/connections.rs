//! Connections: one thread each, counted, and all closed when the server stops.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::http::{Host, Request, Response};
use super::site::Site;

/// Everything that the threads of a server share.
pub(super) struct Connections {
    site: Arc<Site>,
    pub(super) log: Mutex<Vec<Request>>,
    pub(super) accepted: AtomicUsize,
    pub(super) most_at_once: AtomicUsize,
    answering: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    listeners: Mutex<Vec<JoinHandle<()>>>,
    stopping: Stopping,
}

impl Connections {
    pub(super) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            log: Mutex::default(),
            accepted: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            answering: AtomicUsize::new(0),
            open: Mutex::default(),
            threads: Mutex::default(),
            listeners: Mutex::default(),
            stopping: Stopping::default(),
        }
    }

    pub(super) fn accept_from(self: &Arc<Self>, listener: TcpListener, host: Host) {
        let this = Arc::clone(self);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if this.stopping.begun() {
                    return;
                }
                // A client that has gone already.
                let Ok(stream) = stream else { continue };
                this.open.lock().unwrap().push(stream.try_clone().unwrap());
                this.accepted.fetch_add(1, Ordering::SeqCst);
                let serving = Arc::clone(&this);
                let thread = std::thread::spawn(move || serving.serve(stream, host));
                this.threads.lock().unwrap().push(thread);
            }
        });
        self.listeners.lock().unwrap().push(accepting);
    }

    /// Answers one request after another, until either side closes.
    fn serve(&self, mut stream: TcpStream, host: Host) {
        let peer = stream.peer_addr();
        // Errors mean that the client went away, or that the server stops.
        let _ = self.converse(&mut stream, host);
        let _ = stream.shutdown(Shutdown::Both);
        if let Ok(peer) = peer {
            let other = |open: &TcpStream| open.peer_addr().is_ok_and(|address| address != peer);
            self.open.lock().unwrap().retain(other);
        }
    }

    fn converse(&self, stream: &mut TcpStream, host: Host) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let request = match Request::read(&mut reader, host) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return stream.write_all(
                        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    );
                }
                Err(error) => return Err(error),
            };
            self.log.lock().unwrap().push(request.clone());
            let answering = self.answering.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(answering, Ordering::SeqCst);
            let sent = self.answer(&request).send(&request, stream, &self.stopping);
            self.answering.fetch_sub(1, Ordering::SeqCst);
            if !sent? {
                return Ok(());
            }
        }
    }

    fn answer(&self, request: &Request) -> Response {
        let mut response = match request.method.as_str() {
            "GET" | "HEAD" => self.site.answer(request),
            _ => Response::new(405, "text/plain", "only GET and HEAD\n"),
        };
        if let Some(fault) = self.site.faults.take(request, &response) {
            fault.spoil(&mut response, &self.site.base());
        }
        response
    }

    pub(super) fn stop(&self, addresses: &[SocketAddr]) {
        self.stopping.begin();
        for address in addresses {
            // Wakes the thread that accepts; refused where it has stopped before.
            let _ = TcpStream::connect(address);
        }
        // First the threads that begin others.
        for threads in [&self.listeners, &self.threads] {
            for stream in self.open.lock().unwrap().iter() {
                let _ = stream.shutdown(Shutdown::Both);
            }
            let threads = std::mem::take(&mut *threads.lock().unwrap());
            for thread in threads {
                let ended = thread.join();
                assert!(
                    ended.is_ok() || std::thread::panicking(),
                    "a thread of the hub panicked"
                );
            }
        }
    }
}

/// Lets waits end early when the server stops.
#[derive(Default)]
pub(super) struct Stopping {
    begun: Mutex<bool>,
    changed: Condvar,
}

impl Stopping {
    fn begin(&self) {
        *self.begun.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn begun(&self) -> bool {
        *self.begun.lock().unwrap()
    }

    /// Waits for `duration`; an error if the server stops first.
    pub(super) fn wait(&self, duration: Duration) -> io::Result<()> {
        let begun = self.begun.lock().unwrap();
        let (begun, _) = self
            .changed
            .wait_timeout_while(begun, duration, |begun| !*begun)
            .unwrap();
        if *begun {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}
