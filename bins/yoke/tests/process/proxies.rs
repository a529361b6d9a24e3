//! Through which proxy the API server is reached.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use super::Home;

/// How long a command has to connect.
const CONNECTS: Duration = Duration::from_secs(30);

fn home(server: &str, proxy: Option<SocketAddr>) -> Home {
    let home = Home::bare();
    let proxy = proxy.map_or(String::new(), |proxy| {
        format!(", proxy-url: \"http://{proxy}\"")
    });
    let config = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: \"{server}\", insecure-skip-tls-verify: true{proxy}}}}}], \
         users: [{{name: u, user: {{token: t}}}}]}}"
    );
    home.put(".kube/config", config);
    home
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("port");
    let address = listener.local_addr().expect("address");
    (listener, address)
}

/// What a command sends first to whoever listens there.
fn said_first(home: &Home, listener: TcpListener, variables: &[(&str, &str)]) -> Vec<u8> {
    let mut command = home.command(&["mayday", "r"]);
    let mut child = command
        .envs(variables.iter().copied())
        .spawn()
        .expect("started");
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("connected");
        let mut first = [0; 256];
        let length = stream.read(&mut first).expect("read");
        // Nobody waits any more if it came too late.
        tell.send(first[..length].to_vec()).ok();
    });
    let first = told.recv_timeout(CONNECTS);
    child.kill().expect("killed");
    child.wait().expect("ended");
    first.expect("it connects")
}

/// `NO_PROXY` says which servers are reached without the proxy; where that one is itself, is no matter.
#[test]
fn a_server_elsewhere_is_reached_through_the_proxy_of_the_environment() {
    let home = home("https://api.invalid:6443", None);
    let (listener, proxy) = listen();
    let proxy = format!("http://{proxy}");
    let variables = [
        ("HTTPS_PROXY", proxy.as_str()),
        ("NO_PROXY", "127.0.0.1,.example.com"),
    ];
    let first = said_first(&home, listener, &variables);
    assert!(
        first.starts_with(b"CONNECT api.invalid:6443 "),
        "{}",
        String::from_utf8_lossy(&first)
    );
}

#[test]
fn a_server_on_this_machine_is_reached_without_it() {
    let (listener, server) = listen();
    let home = home(&format!("http://{server}"), None);
    let variables = [
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://127.0.0.1:1"),
    ];
    let first = said_first(&home, listener, &variables);
    assert!(
        first.starts_with(b"GET /api/v1/"),
        "{}",
        String::from_utf8_lossy(&first)
    );
}

#[test]
fn a_proxy_of_the_kubeconfig_is_for_its_server_whatever_the_environment_says() {
    let (listener, proxy) = listen();
    let home = home("https://api.invalid:6443", Some(proxy));
    let variables = [
        ("HTTPS_PROXY", "http://127.0.0.1:1"),
        ("NO_PROXY", "127.0.0.1,*.invalid"),
    ];
    let first = said_first(&home, listener, &variables);
    assert!(
        first.starts_with(b"CONNECT api.invalid:6443 "),
        "{}",
        String::from_utf8_lossy(&first)
    );
}
