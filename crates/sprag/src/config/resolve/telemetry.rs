//! `telemetry`: who may see metrics, and where traces go.

use std::net::SocketAddr;

use super::provider;
use crate::config::base_url::BaseUrl;
use crate::config::file;
use crate::config::problem::Problem;
use crate::config::settings::{Telemetry, Traces};

/// Where a collector takes traces.
const PATH: &str = "/v1/traces";

pub(super) fn resolve(
    written: &file::Telemetry,
    admin_listen: Option<SocketAddr>,
    problems: &mut Vec<Problem>,
) -> Telemetry {
    if written.metrics_open && admin_listen.is_some_and(|address| !address.ip().is_loopback()) {
        let message = "the admin listener can be reached from other machines, and so could /metrics without a token";
        let hint = "give the scraper a token that only looks (`sprag tokens create --name prometheus --role viewer`), or let \
                    `admin.listen` be on 127.0.0.1";
        problems.push(Problem::value("telemetry.metrics_open", message).hint(hint));
    }
    Telemetry {
        metrics_open: written.metrics_open,
        metrics_by_agent: written.metrics_by_agent,
        traces: traces(written, problems),
    }
}

fn traces(written: &file::Telemetry, problems: &mut Vec<Problem>) -> Option<Traces> {
    let headers = provider::headers("telemetry.otlp_headers", &written.otlp_headers, problems);
    if written.service_name.trim().is_empty() {
        problems.push(
            Problem::value("telemetry.service_name", "a service needs a name").hint("leave it out for \"sprag\""),
        );
    }
    let base = match BaseUrl::parse(written.otlp.as_deref()?) {
        Ok(base) => base,
        Err(why) => {
            let hint = "expected the address of a collector, as in http://127.0.0.1:4318";
            problems.push(Problem::value("telemetry.otlp", why).hint(hint));
            return None;
        }
    };
    let path = if base.path.ends_with(PATH) { "" } else { PATH };
    let url = format!("{}://{}{}{path}", base.scheme, base.authority, base.path);
    Some(Traces { url, headers, service_name: written.service_name.clone(), sample_ratio: written.sample_ratio })
}

#[cfg(test)]
mod tests {
    use crate::config::sandbox::Sandbox;

    #[test]
    fn a_collector_is_named_by_its_address_or_by_the_whole_path() {
        for (written, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example.com/", "https://otel.example.com/v1/traces"),
            ("https://otel.example.com/otlp", "https://otel.example.com/otlp/v1/traces"),
            ("https://otel.example.com/otlp/v1/traces", "https://otel.example.com/otlp/v1/traces"),
        ] {
            let loaded = Sandbox::new(&format!("[telemetry]\notlp = \"{written}\"\n")).load().unwrap();
            assert_eq!(loaded.settings.telemetry.traces.unwrap().url, url);
        }
        assert_eq!(Sandbox::new("").load().unwrap().settings.telemetry.traces, None);
    }

    #[test]
    fn what_makes_no_sense_is_said_with_its_key() {
        for (text, key) in [
            ("otlp = \"localhost:4318\"", "telemetry.otlp"),
            ("otlp = \"http://me:pw@host\"", "telemetry.otlp"),
            ("otlp_headers = { host = \"x\" }", "telemetry.otlp_headers.host"),
            ("service_name = \" \"", "telemetry.service_name"),
            ("sample_ratio = 1.5", "telemetry.sample_ratio"),
            ("metrics_open = true\n[admin]\nlisten = \"0.0.0.0:7071\"", "telemetry.metrics_open"),
        ] {
            let problems = Sandbox::new(&format!("[telemetry]\n{text}\n")).load().unwrap_err().to_string();
            assert!(problems.contains(key), "{text}: {problems}");
        }
    }
}
