//! The words that the server itself puts into a form, in the agent's language where it is known.

/// What the server writes into labels and reasons. `{tool}` stands for a tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    /// The label of the one field of a confirmation.
    pub(super) confirm: &'static str,
    approve: &'static str,
    pub(super) one_or_more_of: &'static str,
    pub(super) suggestions: &'static str,
    in_doubt: &'static str,
    outcome: &'static str,
    result: &'static str,
}

const ENGLISH: Words = Words {
    confirm: "Confirm action",
    approve: "Approve {tool}",
    one_or_more_of: "one or more of, separated by commas",
    suggestions: "for example",
    in_doubt: "{tool} was interrupted and may or may not have taken effect:",
    outcome: "What became of {tool}? happened: it took effect; run_again: run it once more; abandon: leave it open",
    result: "What came of {tool}, where it happened",
};

const VIETNAMESE: Words = Words {
    confirm: "Xác nhận",
    approve: "Phê duyệt {tool}",
    one_or_more_of: "một hoặc nhiều trong số, cách nhau bằng dấu phẩy",
    suggestions: "ví dụ",
    in_doubt: "{tool} đã bị gián đoạn, có thể đã hoặc chưa có hiệu lực:",
    outcome: "{tool} đã ra sao? happened: đã có hiệu lực; run_again: chạy lại; abandon: bỏ qua",
    result: "Kết quả của {tool}, nếu đã có hiệu lực",
};

const CHINESE: Words = Words {
    confirm: "确认操作",
    approve: "批准 {tool}",
    one_or_more_of: "可选一项或多项，用逗号分隔",
    suggestions: "例如",
    in_doubt: "{tool} 被中断，可能已生效，也可能未生效：",
    outcome: "{tool} 的结果如何？happened：已生效；run_again：重新执行；abandon：放弃",
    result: "若已生效，{tool} 的结果是什么",
};

impl Words {
    /// The words for a language tag such as `vi` or `zh-CN`; English where the language is another or is not known.
    pub(super) fn of(locale: Option<&str>) -> &'static Self {
        match locale.and_then(|tag| tag.split(['-', '_']).next()) {
            Some("vi") => &VIETNAMESE,
            Some("zh") => &CHINESE,
            _ => &ENGLISH,
        }
    }

    /// The label of an approval.
    pub(super) fn approve(&self, tool: &str) -> String {
        self.approve.replace("{tool}", tool)
    }

    /// What is asked of a call in doubt.
    pub(super) fn in_doubt(&self, tool: &str) -> String {
        self.in_doubt.replace("{tool}", tool)
    }

    /// The label of the choice about a call in doubt.
    pub(super) fn outcome(&self, tool: &str) -> String {
        self.outcome.replace("{tool}", tool)
    }

    /// The label of the result of a call in doubt.
    pub(super) fn result(&self, tool: &str) -> String {
        self.result.replace("{tool}", tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_taken_from_the_tag_and_english_stands_in() {
        assert_eq!(Words::of(Some("vi")).confirm, "Xác nhận");
        assert_eq!(Words::of(Some("zh-CN")).confirm, "确认操作");
        assert_eq!(Words::of(Some("fr")).confirm, "Confirm action");
        assert_eq!(Words::of(None).approve("deploy"), "Approve deploy");
    }
}
