//! A browser that is signed in and sends the forms of the dashboard.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sprag_testkit::client::Whole;

use crate::world::{World, cookie, text};

pub(crate) struct Browser<'a> {
    world: &'a World,
    cookie: String,
    csrf: String,
}

impl<'a> Browser<'a> {
    pub(crate) async fn open(world: &'a World) -> Browser<'a> {
        Browser::with(world, &world.token).await
    }

    /// The same with another token.
    pub(crate) async fn with(world: &'a World, token: &str) -> Browser<'a> {
        let cookie = cookie(&world.ask(&format!("/login?token={token}")).fetch().await.unwrap());
        let page = text(&world.ask("/").header("cookie", &cookie).fetch().await.unwrap());
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        Browser { world, csrf: csrf.unwrap().to_owned(), cookie }
    }

    pub(crate) async fn get(&self, path: &str) -> Whole {
        self.world.ask(path).header("cookie", &self.cookie).fetch().await.unwrap()
    }

    /// The text of a page that is there.
    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        text(&answer)
    }

    pub(crate) async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Whole {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let all = fields.iter().copied().chain([("csrf", self.csrf.as_str())]);
        let form: Vec<String> = all.map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        self.world.submit(path, &form.join("&"), &[("cookie", &self.cookie)]).await
    }

    /// Sends a form that is refused; gives the page that says why.
    pub(crate) async fn refused(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.send(path, fields).await;
        assert!(answer.status == 400 || answer.status == 409, "{path}: {} {}", answer.status, text(&answer));
        text(&answer)
    }

    /// Sends a form that is obeyed; gives where it leads.
    pub(crate) async fn done(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.send(path, fields).await;
        assert_eq!(answer.status, 303, "{path}: {}", text(&answer));
        answer.header("location").to_owned()
    }
}

/// The part of a page that belongs to one field.
pub(crate) fn field<'p>(page: &'p str, name: &str) -> &'p str {
    let from = page.split(&format!("for=\"f-{name}\"")).nth(1);
    assert!(from.is_some(), "no field {name}: {page}");
    from.unwrap().split("<div class=\"field").next().unwrap()
}
