//! Bodies of several parts, one of which is a file. Source: RFC 7578.

/// A body and its content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    boundary: String,
    body: Vec<u8>,
}

impl Multipart {
    /// An empty body. Its boundary is one that does not occur in the file.
    #[must_use]
    pub fn new(file: &[u8]) -> Self {
        let is_in = |boundary: &str| {
            let boundary = boundary.as_bytes();
            file.windows(boundary.len()).any(|part| part == boundary)
        };
        let mut boundaries = (0_u64..).map(|n| format!("vocative-part-{n:016x}"));
        let boundary = boundaries.find(|it| !is_in(it));
        Self {
            boundary: boundary.unwrap_or_default(),
            body: Vec::new(),
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.head(&format!("name=\"{}\"", quoted(name)), None);
        self.body.extend_from_slice(value.as_bytes());
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, name: &str, file_name: &str, mime_type: &str, bytes: &[u8]) -> Self {
        let name = format!(
            "name=\"{}\"; filename=\"{}\"",
            quoted(name),
            quoted(file_name)
        );
        self.head(&name, Some(mime_type));
        self.body.extend_from_slice(bytes);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// The content type and the whole body.
    #[must_use]
    pub fn finish(mut self) -> (String, Vec<u8>) {
        let end = format!("--{}--\r\n", self.boundary);
        self.body.extend_from_slice(end.as_bytes());
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        (content_type, self.body)
    }

    fn head(&mut self, disposition: &str, mime_type: Option<&str>) {
        // The type comes from a person's program: control characters could add a header.
        let kind = mime_type.map(|it| it.chars().filter(|c| !c.is_control()).collect::<String>());
        let kind = kind.map_or_else(String::new, |kind| format!("Content-Type: {kind}\r\n"));
        let head = format!(
            "--{}\r\nContent-Disposition: form-data; {disposition}\r\n{kind}\r\n",
            self.boundary
        );
        self.body.extend_from_slice(head.as_bytes());
    }
}

/// A name in which nothing can end its quotes or its line.
fn quoted(name: &str) -> String {
    let shown = name.chars().filter(|c| !c.is_control());
    shown
        .map(|c| if c == '"' || c == '\\' { '_' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_body_has_its_fields_and_a_boundary_that_is_not_in_the_file() {
        let file = b"vocative-part-0000000000000000";
        let body = Multipart::new(file).field("chat_id", "7").file(
            "document",
            "a\"b\r\n.md",
            "text/markdown",
            file,
        );
        let (kind, body) = body.finish();
        assert_eq!(
            kind,
            "multipart/form-data; boundary=vocative-part-0000000000000001"
        );
        let expected = "--vocative-part-0000000000000001\r\n\
            Content-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n\
            --vocative-part-0000000000000001\r\n\
            Content-Disposition: form-data; name=\"document\"; filename=\"a_b.md\"\r\n\
            Content-Type: text/markdown\r\n\r\nvocative-part-0000000000000000\r\n\
            --vocative-part-0000000000000001--\r\n";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }
}
