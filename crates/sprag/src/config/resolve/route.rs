//! `[[routes]]`: where they lead, and what they allow.

use std::sync::Arc;

use http::Method;
use sprag_core::limits;
use sprag_core::loops::{Mode, Rules};
use sprag_core::wire::Family;

use super::provider::{Providers, headers, timeouts};
use super::{expand, rate_limit};
use crate::config::base_url::BaseUrl;
use crate::config::environment::Environment;
use crate::config::file;
use crate::config::file::detection::set;
use crate::config::problem::Problem;
use crate::config::route_rule::{PathSelector, RouteRule};
use crate::config::settings::{Auth, Provider};

/// All routes, those that say more about a path first.
pub(super) fn resolve_all(
    written: &[file::Route],
    providers: &Providers,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<RouteRule>> {
    let mut routes: Vec<Arc<RouteRule>> = Vec::new();
    if written.len() > limits::ROUTES {
        problems.push(Problem::name("routes", format!("more than {} routes", limits::ROUTES)));
        return routes;
    }
    for (place, entry) in written.iter().enumerate() {
        let Some(route) = resolve(place, entry, environment, problems) else { continue };
        let name = &route.upstream.name;
        if routes.iter().any(|other| other.upstream.name == *name) {
            problems.push(Problem::value("routes", format!("two routes are called \"{name}\"")));
        }
        if providers.contains_key(name) {
            problems
                .push(Problem::value("routes", format!("\"{name}\" is the name of a provider; choose another one")));
        }
        routes.push(Arc::new(route));
    }
    // A stable sort: of two that say the same, the first one written is asked first.
    routes.sort_by_key(|route| std::cmp::Reverse(route.selector.precision()));
    routes
}

fn resolve(
    place: usize,
    entry: &file::Route,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Option<RouteRule> {
    let name = entry.name.clone().unwrap_or_else(|| format!("route-{}", place + 1));
    let key = |key: &str| format!("routes[{place}].{key}");
    let before = problems.len();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > limits::PROVIDER_NAME_BYTES || !name.chars().all(is_allowed) {
        let message =
            format!("a route's name is 1 to {} letters, digits, '-', '_' and '.'", limits::PROVIDER_NAME_BYTES);
        problems.push(Problem::value(key("name"), message));
    }
    let selector = selector(entry, &key, problems);
    let methods = methods(entry, &key("methods"), problems);
    let base = upstream(entry, &key("upstream"), problems);
    let headers = headers(&key("headers"), &entry.headers, problems);
    let rate_limits =
        rate_limit::resolve_for(&format!("routes.{name}"), &key("rate_limits"), &entry.rate_limits, problems);
    let rules = rules(entry, &key("repeat"), problems);
    let ca_file = entry.ca_file.as_deref().map(|path| expand(path, environment));
    if let Some(Err(error)) = ca_file.as_ref().map(std::fs::File::open) {
        problems.push(Problem::value(key("ca_file"), format!("cannot be read: {error}")));
    }
    if problems.len() > before {
        return None;
    }
    let upstream = Provider {
        price_as: Arc::from(name.as_str()),
        name: Arc::from(name),
        base: base?,
        family: Family::Openai,
        auth: Auth::None,
        key: None,
        headers,
        stream_usage: false,
        timeouts: timeouts(&entry.timeouts),
        http2: entry.http2,
        ca_file,
    };
    Some(RouteRule { upstream: Arc::new(upstream), selector: selector?, methods, rules: Arc::new(rules), rate_limits })
}

fn selector(entry: &file::Route, key: &dyn Fn(&str) -> String, problems: &mut Vec<Problem>) -> Option<PathSelector> {
    let (name, path, selector): (_, _, fn(String) -> PathSelector) = match (&entry.path_prefix, &entry.path) {
        (Some(prefix), None) => ("path_prefix", prefix, PathSelector::Prefix),
        (None, Some(path)) => ("path", path, PathSelector::Exact),
        _ => {
            let problem = Problem::value(key("path_prefix"), "a route has a `path_prefix` or a `path`, and not both");
            problems.push(problem.hint("add path_prefix = \"/v1/tools/\""));
            return None;
        }
    };
    let is_path =
        path.starts_with('/') && path.len() <= limits::EVENT_PATH_BYTES && !path.contains(['?', '#', ' ', '%']);
    if !is_path {
        let problem = Problem::value(key(name), format!("\"{path}\" is not a path"));
        problems.push(problem.hint("expected something like /v1/tools/, as it is before it is encoded for a URL"));
        return None;
    }
    Some(selector(path.clone()))
}

fn methods(entry: &file::Route, key: &str, problems: &mut Vec<Problem>) -> Vec<Method> {
    let mut methods = Vec::new();
    for text in &entry.methods {
        match Method::from_bytes(text.to_ascii_uppercase().as_bytes()) {
            Ok(method) => methods.push(method),
            Err(_) => problems.push(Problem::value(key, format!("\"{text}\" is not an HTTP method"))),
        }
    }
    methods
}

fn upstream(entry: &file::Route, key: &str, problems: &mut Vec<Problem>) -> Option<BaseUrl> {
    let Some(text) = entry.upstream.as_deref() else {
        problems.push(Problem::value(key, "missing").hint("add upstream = \"http://127.0.0.1:9000\""));
        return None;
    };
    BaseUrl::parse(text)
        .map_err(|message| {
            problems.push(Problem::value(key, message).hint("expected something like http://127.0.0.1:9000"))
        })
        .ok()
}

/// Of all detectors only `repeat` makes sense without a model: it is off unless its mode is set.
fn rules(entry: &file::Route, key: &str, problems: &mut Vec<Problem>) -> Rules {
    let mut rules = Rules::default();
    rules.every_common().into_iter().for_each(|common| common.mode = Mode::Off);
    let (written, repeat) = (&entry.repeat, &mut rules.repeat);
    set(&mut repeat.common.mode, written.mode);
    set(&mut repeat.common.action, written.action);
    set(&mut repeat.common.window.seconds, written.window_seconds);
    set(&mut repeat.common.window.mode, written.window_mode);
    set(&mut repeat.threshold, written.threshold_identical_requests);
    problems.extend(rules.check().into_iter().map(|problem| Problem::value(key, problem)));
    rules
}

#[cfg(test)]
mod tests {
    use crate::config::sandbox::Sandbox;

    const TOOLS: &str =
        "[[routes]]\nname = \"tools\"\npath_prefix = \"/v1/tools/\"\nupstream = \"http://127.0.0.1:9\"\n";

    #[test]
    fn what_says_more_about_a_path_comes_first() {
        let text = format!(
            "{TOOLS}[[routes]]\npath_prefix = \"/v1/\"\nupstream = \"http://a\"\n\
             [[routes]]\npath = \"/v1/tools/x\"\nupstream = \"http://b\""
        );
        let routes = Sandbox::new(&text).load().unwrap().settings.routes;
        let names: Vec<&str> = routes.iter().map(|route| &*route.upstream.name).collect();
        assert_eq!(names, ["route-3", "tools", "route-2"]);
    }

    #[test]
    fn repetition_and_rates_are_read() {
        let text = format!(
            "{TOOLS}methods = [\"get\"]\n[routes.repeat]\nmode = \"enforce\"\nwindow_seconds = 45\naction = \"throttle\"\n\
             [[routes.rate_limits]]\nname = \"base-rps\"\nrps = 20\nburst = 40"
        );
        let routes = Sandbox::new(&text).load().unwrap().settings.routes;
        let repeat = &routes[0].rules.repeat;
        assert_eq!((repeat.common.window.seconds, repeat.threshold), (45, 4));
        assert_eq!(&*routes[0].rate_limits[0].name, "base-rps");
        assert_eq!(routes[0].methods, [http::Method::GET]);
    }

    #[test]
    fn limits_count_on_when_a_route_moves() {
        let limited = format!("{TOOLS}[[routes.rate_limits]]\nrps = 1\n");
        let other =
            "[[routes]]\nname = \"other\"\npath = \"/x\"\nupstream = \"http://a\"\n[[routes.rate_limits]]\nrps = 1\n";
        let ids = |text: &str| -> Vec<u64> {
            let routes = Sandbox::new(text).load().unwrap().settings.routes;
            routes.iter().map(|route| route.rate_limits[0].id).collect()
        };
        let (alone, moved) = (ids(&limited), ids(&format!("{other}{limited}")));
        assert!(moved.contains(&alone[0]));
        assert_ne!(moved[0], moved[1], "two routes never share a counter");
    }

    #[test]
    fn says_what_cannot_be_used() {
        for (text, expected) in [
            ("[[routes]]\nupstream = \"http://a\"".to_owned(), "a route has a `path_prefix` or a `path`, and not both"),
            ("[[routes]]\npath = \"/x\"".to_owned(), "add upstream ="),
            ("[[routes]]\npath = \"x\"\nupstream = \"http://a\"".to_owned(), "\"x\" is not a path"),
            (
                "[[routes]]\npath = \"/x\"\nupstream = \"a b\"".to_owned(),
                "expected something like http://127.0.0.1:9000",
            ),
            (format!("{TOOLS}methods = [\"A B\"]"), "\"A B\" is not an HTTP method"),
            (format!("{TOOLS}{TOOLS}"), "two routes are called \"tools\""),
            (TOOLS.replace("tools\"\n", "openai\"\n"), "is the name of a provider"),
            (format!("{TOOLS}[routes.repeat]\naction = \"kill_run\""), "expected \"warn\", \"throttle\" or \"reject\""),
            (format!("{TOOLS}[routes.repeat]\nladder = [\"warn\"]"), "ladder"),
            (format!("{TOOLS}[routes.repeat]\nthreshold_identical_requests = 1"), "expected 2 to 10000"),
            (format!("{TOOLS}path_prefx = \"/\""), "did you mean `path_prefix`?"),
        ] {
            let complaint = Sandbox::new(&text).complaint();
            assert!(complaint.contains(expected), "{text}\n---\n{complaint}");
        }
    }
}
