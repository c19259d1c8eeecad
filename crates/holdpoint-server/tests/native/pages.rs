//! The pages load nothing from elsewhere and run nothing that is not theirs.

use crate::world::World;

#[tokio::test]
async fn pages_are_whole_in_themselves_and_locked_down() {
    let world = World::with_keys().await;
    for path in ["/", "/docs"] {
        let page = world.get(path).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let policy = page.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!page.body.contains("://") && !page.body.contains("<style"), "{}", page.body);
        let reacts = |word: &str| word.starts_with("on") && word.contains('=');
        assert!(!page.body.split_whitespace().any(reacts), "{}", page.body);
        let linked = page.body.split(['"', '\'']).filter(|text| text.starts_with("/assets/"));
        for asset in linked {
            assert_eq!(world.get(asset).await.status, 200, "{asset}");
        }
    }
}

#[tokio::test]
async fn scripts_write_text_and_never_markup() {
    let world = World::solo().await;
    for path in ["/assets/index.js", "/assets/docs.js"] {
        let script = world.get(path).await;
        assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
        for danger in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "://"] {
            assert!(!script.body.contains(danger), "{path} has {danger}");
        }
    }
}

#[tokio::test]
async fn what_browsers_ask_for_unasked_is_no_mistake() {
    let world = World::with_keys().await;
    assert_eq!(world.get("/favicon.ico").await.status, 204);
}
