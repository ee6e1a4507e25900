use std::net::IpAddr;

/// Who stands between here and the network, and for which hosts nobody does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<String>,
    https: Option<String>,
    direct: Vec<Direct>,
}

/// Hosts that are asked without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    All,
    /// A host and all under it, at one port or any.
    Host(String, Option<u16>),
    /// The addresses that begin with so many bits of this one.
    Net(IpAddr, u32),
}

impl Proxies {
    /// Reads the variables that curl and the Python libraries read, each in lower case first: `HTTP_PROXY` for http,
    /// `HTTPS_PROXY` for https, `ALL_PROXY` where those are not set; `NO_PROXY` names hosts, their domains, addresses and
    /// networks (`10.0.0.0/8`), or `*`.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| var(&name.to_ascii_lowercase()).or_else(|| var(name));
        let all = || either("ALL_PROXY");
        let direct = either("NO_PROXY").unwrap_or_default();
        Self {
            http: either("HTTP_PROXY").or_else(all),
            https: either("HTTPS_PROXY").or_else(all),
            direct: direct
                .split([',', ' '])
                .filter_map(|entry| Direct::parse(entry.trim()))
                .collect(),
        }
    }

    /// The address of the proxy to ask for `host` at `port`, if there is one.
    #[cfg(feature = "net")]
    pub(super) fn of(&self, is_https: bool, host: &str, port: u16) -> Option<&str> {
        let proxy = if is_https { &self.https } else { &self.http };
        let is_direct = self.direct.iter().any(|direct| direct.has(host, port));
        proxy.as_deref().filter(|_| !is_direct)
    }
}

impl Direct {
    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self::All);
        }
        if let Some((address, bits)) = entry.split_once('/') {
            return Some(Self::Net(address.parse().ok()?, bits.parse().ok()?));
        }
        let (host, port) = match entry.rsplit_once(':') {
            // More than one colon is an address of IPv6.
            Some((host, port)) if !host.contains(':') => (host, Some(port.parse().ok()?)),
            _ => (entry, None),
        };
        let host = host.strip_prefix('*').unwrap_or(host);
        let host = host.strip_prefix('.').unwrap_or(host);
        (!host.is_empty()).then(|| Self::Host(host.to_ascii_lowercase(), port))
    }

    #[cfg(feature = "net")]
    fn has(&self, host: &str, port: u16) -> bool {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        match self {
            Self::All => true,
            Self::Host(known, at) => {
                let is_under = host
                    .strip_suffix(known.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                is_under && at.is_none_or(|at| at == port)
            }
            Self::Net(net, bits) => match (net, host.parse()) {
                (IpAddr::V4(net), Ok(IpAddr::V4(host))) => {
                    let differ = net.to_bits() ^ host.to_bits();
                    differ.leading_zeros() >= (*bits).min(u32::BITS)
                }
                (IpAddr::V6(net), Ok(IpAddr::V6(host))) => {
                    let differ = net.to_bits() ^ host.to_bits();
                    differ.leading_zeros() >= (*bits).min(u128::BITS)
                }
                _ => false,
            },
        }
    }
}

#[cfg(all(test, feature = "net"))]
mod tests {
    use super::*;

    fn proxies(vars: &[(&str, &str)]) -> Proxies {
        let find = |name: &str| vars.iter().find(|(known, _)| *known == name);
        Proxies::from_vars(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        type Vars<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Vars<'_>, Option<&str>, Option<&str>); 5] = [
            (&[], None, None),
            (&[("HTTP_PROXY", "p")], Some("p"), None),
            (
                &[("https_proxy", "s"), ("HTTPS_PROXY", "S")],
                None,
                Some("s"),
            ),
            (&[("ALL_PROXY", "a")], Some("a"), Some("a")),
            (
                &[("all_proxy", "a"), ("HTTP_PROXY", "p")],
                Some("p"),
                Some("a"),
            ),
        ];
        for (vars, http, https) in cases {
            let proxies = proxies(vars);
            assert_eq!(proxies.of(false, "h", 80), http, "{vars:?}");
            assert_eq!(proxies.of(true, "h", 443), https, "{vars:?}");
        }
    }

    #[test]
    fn hosts_that_need_no_proxy_are_told_from_others() {
        let cases = [
            ("*", "any.example", 80, true),
            ("a.example, b.example", "B.example", 80, true),
            ("b.example", "hub.b.example", 80, true),
            ("*.b.example", "hub.b.example", 80, true),
            (".b.example", "b.example", 80, true),
            ("b.example", "bb.example", 80, false),
            ("b.example:8080", "b.example", 8080, true),
            ("b.example:8080", "b.example", 80, false),
            ("127.0.0.1", "127.0.0.1", 9, true),
            ("10.0.0.0/8", "10.1.2.3", 80, true),
            ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("0.0.0.0/0", "11.1.2.3", 80, true),
            ("::1", "[::1]", 80, true),
            ("fd00::/8", "[fd12::1]", 80, true),
            ("", "b.example", 80, false),
            (",", "b.example", 80, false),
        ];
        for (direct, host, port, is_direct) in cases {
            let proxies = proxies(&[("HTTP_PROXY", "p"), ("NO_PROXY", direct)]);
            let proxy = proxies.of(false, host, port);
            assert_eq!(proxy.is_none(), is_direct, "{direct} {host}:{port}");
        }
    }
}
