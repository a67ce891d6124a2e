//! A mail, as text and as HTML.

use super::super::act_link::ActLink;
use super::super::alert::Alert;
use super::rows::{Tone, rows, title, tone};
use super::text::{fitted, html as for_html};

const ONCE: &str = "Such a link shows what it will do and asks first. It works once; whoever has this mail may use it.";

/// What a mail says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    /// One line.
    pub subject: String,
    /// For readers of plain text.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

/// The mail about an alert.
#[must_use]
pub fn email(alert: &Alert, links: &[ActLink]) -> Email {
    let subject = title(alert);
    let color = match tone(alert) {
        Tone::Bad => "#d13438",
        Tone::Odd => "#b07c00",
        Tone::Good => "#188a42",
    };
    let (mut text, mut table) = (format!("{subject}\n\n"), String::new());
    for (name, row) in rows(alert) {
        text.push_str(&format!("{:<18}{row}\n", format!("{name}:")));
        table.push_str(&format!(
            "<tr><th align=\"left\" valign=\"top\" style=\"padding:4px 16px 4px 0;color:#666;font-weight:normal\">{name}</th>\
             <td style=\"padding:4px 0\">{}</td></tr>\n",
            escaped(&row)
        ));
    }
    let mut html = format!(
        "<!doctype html>\n<html><body style=\"font-family:sans-serif;color:#222\">\n\
         <h1 style=\"font-size:18px;color:{color}\">{}</h1>\n<table style=\"border-collapse:collapse\">\n{table}</table>\n",
        escaped(&subject)
    );
    for link in links {
        let (label, url) = (link.act.label(), &link.url);
        text.push_str(&format!("\n{label}: {url}\n"));
        html.push_str(&format!("<p><a href=\"{}\">{label}</a></p>\n", escaped(url)));
    }
    if !links.is_empty() {
        text.push_str(&format!("\n{ONCE}\n"));
        html.push_str(&format!("<p style=\"color:#666\">{ONCE}</p>\n"));
    }
    if let Some(link) = &alert.link {
        text.push_str(&format!("\n{link}\n"));
        html.push_str(&format!("<p><a href=\"{}\">Open in Sprag</a></p>\n", escaped(link)));
    }
    html.push_str("</body></html>\n");
    Email { subject, text, html }
}

fn escaped(text: &str) -> String {
    fitted(text, usize::MAX, for_html)
}
