//! Signing in and out.

use sprag_core::limits::WRONG_TOKENS;

use crate::world::{World, cookie, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_with_the_token_signs_in_and_leaves_no_token_behind() {
    let world = World::start().await;
    let answer = world.ask(&format!("/login?token={}", world.token)).fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/"));
    let set = answer.header("set-cookie");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=86400"] {
        assert!(set.split("; ").any(|part| part == attribute), "{set}");
    }
    assert!(set.starts_with(&format!("sprag_session_{}=", world.sprag.admin.port())), "{set}");
    assert!(!set.contains(&world.token));

    let cookie = cookie(&answer);
    let page = world.ask("/").header("cookie", &cookie).fetch().await.unwrap();
    assert_eq!(page.status, 200);
    assert!(!text(&page).contains(&world.token));
    let again = world.ask("/login").header("cookie", &cookie).fetch().await.unwrap();
    assert_eq!(again.header("location"), "/", "who is in need not sign in");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_signs_in_and_the_button_signs_out() {
    let world = World::start().await;
    let form = world.ask("/login").fetch().await.unwrap();
    assert_eq!(form.status, 200);
    assert!(text(&form).contains("name=\"token\""));

    let wrong = world.submit("/login", "token=wrong", &[]).await;
    assert_eq!((wrong.status.as_u16(), wrong.header("set-cookie")), (401, ""));
    assert!(text(&wrong).contains("this token is not known"));

    let right = world.submit("/login", &format!("token={}", world.token), &[("sec-fetch-site", "same-origin")]).await;
    assert_eq!(right.header("location"), "/");
    let cookie = cookie(&right);

    let foreign = world.submit("/logout", "", &[("cookie", &cookie), ("sec-fetch-site", "cross-site")]).await;
    assert_eq!(foreign.status, 403);
    let foreign = world.submit("/logout", "", &[("cookie", &cookie), ("origin", "http://evil.example")]).await;
    assert_eq!(foreign.status, 403);
    assert_eq!(world.ask("/").header("cookie", &cookie).fetch().await.unwrap().status, 200, "still in");

    let without = world.submit("/logout", "", &[("cookie", &cookie), ("sec-fetch-site", "same-origin")]).await;
    assert_eq!(without.status, 403, "a form that Sprag did not give");
    assert_eq!(world.ask("/").header("cookie", &cookie).fetch().await.unwrap().status, 200, "still in");

    let form = format!("csrf={}", world.csrf(&cookie).await);
    let left = world.submit("/logout", &form, &[("cookie", &cookie), ("sec-fetch-site", "same-origin")]).await;
    assert_eq!(left.header("location"), "/login");
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(world.ask("/").header("cookie", &cookie).fetch().await.unwrap().status, 303, "the session is over");
    let again = world.submit("/logout", "", &[("cookie", &cookie)]).await;
    assert_eq!(again.header("location"), "/login", "who is out already needs nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_token_cannot_be_guessed_at_speed() {
    let world = World::with_token("hunter2").await;
    let cookie = world.sign_in().await;
    for attempt in 0..WRONG_TOKENS {
        // By link, by form and by header, all counted together.
        let answer = match attempt % 3 {
            0 => world.ask(&format!("/login?token=guess{attempt}")).fetch().await.unwrap(),
            1 => world.submit("/login", &format!("token=guess{attempt}"), &[]).await,
            _ => world.ask("/api/v1/status").header("authorization", "Bearer guess").fetch().await.unwrap(),
        };
        assert_eq!(answer.status, 401, "{attempt}");
    }
    let right = world.ask("/login?token=hunter2").fetch().await.unwrap();
    assert_eq!((right.status.as_u16(), right.header("set-cookie")), (429, ""));
    assert!((1..=60).contains(&right.header("retry-after").parse::<u32>().unwrap()));
    let answer = world.api("/status").await;
    assert_eq!(answer.status, 429);
    assert!((1..=60).contains(&answer.header("retry-after").parse::<u32>().unwrap()));
    assert_eq!(world.ask("/").header("cookie", &cookie).fetch().await.unwrap().status, 200, "sessions go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_cannot_lock_out_who_has_a_long_token() {
    let world = World::start().await;
    for _ in 0..=WRONG_TOKENS {
        world.ask("/api/v1/status").header("authorization", "Bearer guess").fetch().await.unwrap();
    }
    let wrong = world.ask("/login?token=guess").fetch().await.unwrap();
    assert_eq!(wrong.status, 429);
    assert_eq!(world.api("/status").await.status, 200);
    assert_eq!(world.ask(&format!("/login?token={}", world.token)).fetch().await.unwrap().status, 303);
}
