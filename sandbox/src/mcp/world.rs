//! What the server offers, and what it answers a request.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The newest version with a handshake.
const LEGACY: &str = "2025-11-25";
/// The stateless version.
const MODERN: &str = "2026-07-28";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The id of the server's own request.
const ASKED: &str = "asked";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What the server offers, and how it behaves.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct McpWorld {
    /// Which era it speaks.
    pub era: Era,
    /// Its tools. Each takes a text and repeats it; `count` says how often tools were called.
    pub tools: Vec<String>,
    /// The description of each tool.
    pub description: String,
    /// What goes wrong with a call.
    pub fault: Option<McpCallFault>,
    /// The token that it wants over HTTP.
    pub token: Option<String>,
    /// How many tools are on one page of its list.
    pub page: usize,
    /// How many calls were made.
    pub calls: usize,
    /// How many requests the client cancelled.
    pub cancelled: usize,
    /// The texts of the calls that went on after a size was given.
    pub sized: Vec<String>,
}

impl Default for McpWorld {
    fn default() -> Self {
        Self {
            era: Era::Modern,
            tools: vec!["echo".to_owned()],
            description: "Repeats a text.".to_owned(),
            fault: None,
            token: None,
            page: 2,
            calls: 0,
            cancelled: 0,
            sized: Vec::new(),
        }
    }
}

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// A handshake, then requests.
    Legacy,
    /// Each request holds everything that is needed.
    Modern,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpCallFault {
    /// The server process ends.
    Dies,
    /// It never answers.
    Hangs,
    /// It asks a person first: for a size, `s` or `l`. Then it says the text, and what was answered. A server of the
    /// era with a handshake asks while the call is at work.
    Asks,
    /// It reports that it is half done, and never ends.
    Progress,
    /// It answers with 8 MiB.
    Huge,
    /// It answers with something that is not JSON.
    Broken,
    /// It answers with an error for the model.
    Refuses,
    /// It answers with an image, a broken image, a table for people and a link beside the text.
    Files,
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum McpReply {
    /// This message.
    Message(Value),
    /// Nothing: it was a notification.
    Nothing,
    /// Something that is no message.
    Broken,
    /// The server ends.
    Die,
    /// No answer, ever.
    Hang,
    /// This notification, then no answer, ever.
    Notify(Value),
    /// A request of its own, about the call that waits for its answer.
    Ask(Value),
}

/// What is known of a client on one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct McpSession {
    /// Whether the handshake was made.
    pub(super) is_open: bool,
    /// The call about which the client was asked, and its text.
    pub(super) asked_about: Option<(Value, String)>,
}

impl McpWorld {
    /// Answers a message.
    pub(super) fn answer(&mut self, message: &Value, session: &mut McpSession) -> McpReply {
        let method = message["method"].as_str().unwrap_or_default();
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            self.cancelled += usize::from(method == "notifications/cancelled");
            return McpReply::Nothing;
        };
        if method.is_empty() {
            return session.answered(id, message);
        }
        let answered = match self.refusal(message, method, session.is_open) {
            Some(error) => Err(error),
            None => self.result(message, method, session),
        };
        match answered {
            Ok(McpReply::Message(mut result)) => {
                if self.era == Era::Modern && result["resultType"].is_null() {
                    result["resultType"] = "complete".into();
                }
                McpReply::Message(json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            Ok(other) => other,
            Err((code, text, data)) => McpReply::Message(json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, "data": data},
            })),
        }
    }

    /// What is wrong with a request, checked before its method is run.
    fn refusal(
        &self,
        message: &Value,
        method: &str,
        is_open: bool,
    ) -> Option<(i64, &'static str, Value)> {
        match self.era {
            Era::Legacy if method == "initialize" || method == "ping" => None,
            Era::Legacy if method == "server/discover" => {
                Some((-32601, "method not found", Value::Null))
            }
            Era::Legacy => (!is_open).then_some((-32600, "not initialized", Value::Null)),
            Era::Modern => {
                let meta = &message["params"]["_meta"];
                if !meta[META_CAPABILITIES].is_object() {
                    return Some((-32602, "the client's capabilities are missing", Value::Null));
                }
                match meta[META_VERSION].as_str() {
                    None => Some((-32602, "the version is missing", Value::Null)),
                    Some(MODERN) => None,
                    Some(asked) => Some((
                        -32022,
                        "unsupported version",
                        json!({"supported": [MODERN], "requested": asked}),
                    )),
                }
            }
        }
    }

    fn result(
        &mut self,
        message: &Value,
        method: &str,
        session: &mut McpSession,
    ) -> Result<McpReply, (i64, &'static str, Value)> {
        let capabilities = json!({"tools": {"listChanged": true}});
        let own = json!({"name": "loopback", "version": "1"});
        let params = &message["params"];
        Ok(match (self.era, method) {
            (Era::Legacy, "initialize") => {
                session.is_open = true;
                McpReply::Message(json!({
                    "protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": own,
                }))
            }
            (Era::Legacy, "ping") => McpReply::Message(json!({})),
            (Era::Modern, "server/discover") => McpReply::Message(json!({
                "supportedVersions": [MODERN], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": own},
            })),
            (_, "tools/list") => self.page(params)?,
            (_, "tools/call") => self.call(&message["id"], params, session)?,
            _ => return Err((-32601, "method not found", Value::Null)),
        })
    }

    fn page(&self, params: &Value) -> Result<McpReply, (i64, &'static str, Value)> {
        let from = match &params["cursor"] {
            Value::Null => 0,
            cursor => {
                let from = cursor.as_str().and_then(|it| it.parse::<usize>().ok());
                from.filter(|from| *from < self.tools.len()).ok_or((
                    -32602,
                    "no such cursor",
                    Value::Null,
                ))?
            }
        };
        let to = (from + self.page.max(1)).min(self.tools.len());
        let tool = |name: &String| {
            json!({
                "name": name,
                "description": self.description,
                "annotations": {"readOnlyHint": true},
                "inputSchema": {
                    "type": "object", "required": ["text"], "$defs": {"text": {"type": "string"}},
                    "properties": {"text": {"$ref": "#/$defs/text"}},
                },
            })
        };
        let tools: Vec<Value> = self.tools[from..to].iter().map(tool).collect();
        let mut page = json!({"tools": tools});
        if self.era == Era::Modern {
            page["ttlMs"] = 60_000.into();
            page["cacheScope"] = "private".into();
        }
        if to < self.tools.len() {
            page["nextCursor"] = to.to_string().into();
        }
        Ok(McpReply::Message(page))
    }

    fn call(
        &mut self,
        id: &Value,
        params: &Value,
        session: &mut McpSession,
    ) -> Result<McpReply, (i64, &'static str, Value)> {
        let name = params["name"].as_str().unwrap_or_default();
        if !self.tools.iter().any(|tool| tool == name) {
            return Err((-32602, "no such tool", Value::Null));
        }
        self.calls += 1;
        let Some(said) = params["arguments"]["text"].as_str() else {
            return Err((-32602, "text is missing", Value::Null));
        };
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        Ok(match self.fault {
            None if name == "count" => McpReply::Message(text(&self.calls.to_string())),
            None => McpReply::Message(text(said)),
            Some(McpCallFault::Dies) => McpReply::Die,
            Some(McpCallFault::Hangs) => McpReply::Hang,
            Some(McpCallFault::Broken) => McpReply::Broken,
            Some(McpCallFault::Huge) => McpReply::Message(text(&"x".repeat(8 << 20))),
            Some(McpCallFault::Refuses) => {
                let mut refused = text("there is no such thing");
                refused["isError"] = true.into();
                McpReply::Message(refused)
            }
            Some(McpCallFault::Asks) if self.era == Era::Modern => {
                let reply = asked(params, said)?;
                if params["inputResponses"]["q"]["action"] == "accept" {
                    self.sized.push(said.to_owned());
                }
                reply
            }
            Some(McpCallFault::Asks) => {
                session.asked_about = Some((id.clone(), said.to_owned()));
                McpReply::Ask(json!({
                    "jsonrpc": "2.0", "id": ASKED, "method": "elicitation/create",
                    "params": {"message": "Which size?", "requestedSchema": sizes()},
                }))
            }
            Some(McpCallFault::Progress) => {
                let token = &params["_meta"]["progressToken"];
                if token.is_null() {
                    return Err((-32602, "there is nobody to tell how far it is", Value::Null));
                }
                McpReply::Notify(json!({
                    "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half\u{202e} through"},
                }))
            }
            Some(McpCallFault::Files) => McpReply::Message(json!({"content": [
                {"type": "text", "text": said},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
                {"type": "resource", "annotations": {"audience": ["user"]}, "resource": {
                    "uri": "file:///srv/report.csv", "mimeType": "text/csv", "blob": "YSxiCjEsMgo=",
                }},
                {"type": "image", "data": "no Base64", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "https://example.com/plan", "name": "plan"},
            ]})),
        })
    }
}

impl McpSession {
    /// The server's message after an answer of the client: the result of the call about which it was asked.
    fn answered(&mut self, id: &Value, message: &Value) -> McpReply {
        let asked = self.asked_about.take().filter(|_| id == ASKED);
        let Some((call, said)) = asked else {
            return McpReply::Nothing;
        };
        let action = message["result"]["action"].as_str().unwrap_or("error");
        let text = format!("{said}: {action}");
        let result = json!({"content": [{"type": "text", "text": text}]});
        McpReply::Message(json!({"jsonrpc": "2.0", "id": call, "result": result}))
    }
}

/// The form that asks for a size.
fn sizes() -> Value {
    json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
    }})
}

/// A call of the tool that asks for a size: a client that can't ask is refused, and one that sends something else back.
fn asked(params: &Value, said: &str) -> Result<McpReply, (i64, &'static str, Value)> {
    const STATE: &str = "opaque ä 1";
    if params["_meta"][META_CAPABILITIES]["elicitation"].is_null() {
        return Err((-32003, "the client can't ask anybody", Value::Null));
    }
    let answers = &params["inputResponses"];
    if answers.is_null() {
        return Ok(McpReply::Message(json!({
            "resultType": "input_required",
            "requestState": STATE,
            "inputRequests": {"q": {"method": "elicitation/create", "params": {
                "mode": "form", "message": "Which size?", "requestedSchema": sizes(),
            }}},
        })));
    }
    let action = answers["q"]["action"].as_str().unwrap_or_default();
    let size = answers["q"]["content"]["size"].as_str();
    let is_fit = match action {
        "accept" => matches!(size, Some("s" | "l")),
        "decline" | "cancel" => size.is_none(),
        _ => false,
    };
    if params["requestState"] != STATE || !is_fit {
        return Err((-32602, "that is no answer to what was asked", Value::Null));
    }
    let text = format!("{said}: {action} {}", size.unwrap_or("nothing"));
    Ok(McpReply::Message(
        json!({"content": [{"type": "text", "text": text}]}),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(reply: &McpReply) -> i64 {
        let McpReply::Message(message) = reply else {
            return 0;
        };
        message["error"]["code"].as_i64().unwrap_or_default()
    }

    #[test]
    fn each_era_refuses_what_the_other_sends() {
        let meta = json!({META_VERSION: MODERN, META_CAPABILITIES: {}});
        let old = json!({META_VERSION: LEGACY, META_CAPABILITIES: {}});
        let request = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let cases = [
            (Era::Modern, request("tools/list", json!({})), -32602),
            (
                Era::Modern,
                request("tools/list", json!({"_meta": old})),
                -32022,
            ),
            (
                Era::Modern,
                request("initialize", json!({"_meta": meta})),
                -32601,
            ),
            (
                Era::Modern,
                request("tools/list", json!({"_meta": meta})),
                0,
            ),
            (
                Era::Modern,
                request("tools/list", json!({"_meta": meta, "cursor": "9"})),
                -32602,
            ),
            (
                Era::Legacy,
                request("server/discover", json!({"_meta": meta})),
                -32601,
            ),
            (Era::Legacy, request("tools/list", json!({})), -32600),
        ];
        for (era, message, expected) in cases {
            let mut world = McpWorld {
                era,
                ..McpWorld::default()
            };
            let reply = world.answer(&message, &mut McpSession::default());
            assert_eq!(code(&reply), expected, "{message}: {reply:?}");
        }
    }
}
