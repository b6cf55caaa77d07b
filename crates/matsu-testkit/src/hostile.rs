//! Documents that are made to break their readers.

/// A page that draws a form which draws itself.
#[must_use]
pub fn pdf_that_draws_itself() -> Vec<u8> {
    let form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >>";
    pdf(&[stream(b"/Resources << /XObject << /X 5 0 R >> >>", b"/X Do"), stream(form, b"/X Do")])
}

/// A page whose content is this many zeros, compressed three times over to a kilobyte or so.
#[must_use]
pub fn pdf_that_inflates_to(bytes: u64) -> Vec<u8> {
    // What repeats in the output of one round is as many bytes long as its code for the longest copy has bits.
    let twice = deflate(&zeros(bytes), 13);
    let thrice = deflate(&twice, 15);
    pdf(&[stream(b"/Filter [/FlateDecode /FlateDecode /FlateDecode]", &thrice)])
}

/// A PDF with a line of text and another PDF in an attachment.
#[must_use]
pub fn pdf_inside_a_pdf(line: &str, inner: &[u8]) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 760 Td ({line}) Tj ET");
    pdf(&[
        stream(b"", content.as_bytes()),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
        stream(b"/Type /EmbeddedFile /Subtype /application#2Fpdf", inner),
        b"<< /Type /Filespec /F (inner.pdf) /EF << /F 6 0 R >> >>".to_vec(),
    ])
}

/// HTML with a sentence at the bottom of so many elements.
#[must_use]
pub fn html_nested(depth: usize) -> Vec<u8> {
    let (open, close) = ("<div>".repeat(depth), "</div>".repeat(depth));
    format!("<html><body>{open}<p>At the bottom.</p>{close}</body></html>").into_bytes()
}

fn stream(entries: &[u8], content: &[u8]) -> Vec<u8> {
    let length = format!(" /Length {} >>\nstream\n", content.len());
    [b"<< ", entries, length.as_bytes(), content, b"\nendstream"].concat()
}

/// A file of one page. The first of the objects, number 4, is what it shows; a font is number 5, attachments number 7.
fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let names = if objects.len() > 3 { " /Names << /EmbeddedFiles << /Names [(a) 7 0 R] >> >>" } else { "" };
    let first = [
        format!("<< /Type /Catalog /Pages 2 0 R{names} >>"),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> /XObject << /X 5 0 R >> >> >>"
            .to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for object in first.iter().map(|text| text.as_bytes()).chain(objects.iter().map(Vec::as_slice)) {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", places.len()).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    for place in &places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    file.extend(format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", places.len() + 1).bytes());
    file
}

/// zlib of zeros by hand: one of them, and copies of it.
fn zeros(count: u64) -> Vec<u8> {
    let mut bits = Bits::begun();
    bits.literal(0);
    let (mut copies, rest) = ((count - 1) / 258, (count - 1) % 258);
    while bits.filled != 0 && copies > 0 {
        bits.copy(1);
        copies -= 1;
    }
    // Eight copies are thirteen whole bytes.
    let at = bits.bytes.len();
    (0..8).for_each(|_| bits.copy(1));
    let eight = bits.bytes.split_off(at);
    (0..copies / 8).for_each(|_| bits.bytes.extend(&eight));
    (0..copies % 8).for_each(|_| bits.copy(1));
    (0..rest).for_each(|_| bits.literal(0));
    bits.ended(1, u32::try_from(count % 65_521).unwrap_or(0))
}

/// zlib by hand: 258 bytes that repeat those `distance` before are a copy, all others stand as they are.
fn deflate(input: &[u8], distance: usize) -> Vec<u8> {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in input {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    let mut bits = Bits::begun();
    let mut at = 0;
    while at < input.len() {
        let repeats = at >= distance
            && input.get(at..at + 258).is_some_and(|next| *next == input[at - distance..at - distance + 258]);
        if repeats {
            bits.copy(distance);
            at += 258;
        } else {
            bits.literal(input[at]);
            at += 1;
        }
    }
    bits.ended(a, b)
}

/// Bits as deflate packs them.
struct Bits {
    bytes: Vec<u8>,
    byte: u8,
    filled: u32,
}

impl Bits {
    /// One last block with the fixed codes.
    fn begun() -> Self {
        let mut bits = Self { bytes: vec![0x78, 0x01], byte: 0, filled: 0 };
        bits.low_first(0b011, 3);
        bits
    }

    /// The end of the block, what is left of the last byte, and the checksum.
    fn ended(mut self, a: u32, b: u32) -> Vec<u8> {
        self.low_first(0, 7);
        self.low_first(0, (8 - self.filled) % 8);
        self.bytes.extend(((b << 16) | a).to_be_bytes());
        self.bytes
    }

    /// 258 bytes from 1 or from 13 to 16 before.
    fn copy(&mut self, distance: usize) {
        self.high_first(0b1100_0101, 8);
        match u32::try_from(distance.saturating_sub(13)) {
            Ok(more) if distance > 1 => {
                self.high_first(7, 5);
                self.low_first(more, 2);
            }
            _ => self.high_first(0, 5),
        }
    }

    fn low_first(&mut self, value: u32, count: u32) {
        for at in 0..count {
            self.byte |= u8::try_from((value >> at) & 1).unwrap_or(0) << self.filled;
            self.filled += 1;
            if self.filled == 8 {
                self.bytes.push(self.byte);
                (self.byte, self.filled) = (0, 0);
            }
        }
    }

    fn high_first(&mut self, value: u32, count: u32) {
        for at in (0..count).rev() {
            self.low_first((value >> at) & 1, 1);
        }
    }

    fn literal(&mut self, byte: u8) {
        match byte {
            0..144 => self.high_first(0x30 + u32::from(byte), 8),
            144.. => self.high_first(0x190 + u32::from(byte) - 144, 9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_gibibytes_fit_into_little() {
        let file = pdf_that_inflates_to(3 * 1024 * 1024 * 1024);
        assert!(file.len() < 8 * 1024, "{}", file.len());
        assert!(pdf_that_draws_itself().len() < 1024);
        assert!(pdf_inside_a_pdf("x", &file).len() > file.len());
        assert_eq!(html_nested(2).len(), "<html><body><p>At the bottom.</p></body></html>".len() + 2 * 11);
    }
}
