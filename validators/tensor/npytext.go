package tensor

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf8"
)

// maxTextWidth bounds the characters of one text of an npy array.
const maxTextWidth = 1 << 16

// textDescr reads the dtype of text: S and a number of bytes, or U and a number of characters of
// four bytes.
func (h *npyHeader) textDescr(p *pyParser, s, order, kind string) {
	width, err := strconv.ParseInt(kind[1:], 10, 64)
	if err != nil || width < 0 || width > maxTextWidth || kind[0] == 'U' && order != "<" && order != ">" {
		p.abort(faultf(ErrUnsupported, "npy: dtype %.64q: want text of at most %d characters", s, maxTextWidth))
		return
	}
	h.text, h.width, h.info.DType = kind[0], width, Uint8
	if kind[0] == 'U' {
		h.info.DType, h.bigEndian = Uint32, order == ">"
	}
}

// asBytes returns text as [PackText] stores it. t has the characters of each text along its last
// dimension, as in the file.
func (h npyHeader) asBytes(t Tensor) (Tensor, error) {
	if h.text == 0 {
		return t, nil
	}
	width := int(h.width) * t.DType.Size()
	count := int64(1)
	shape := t.Shape[:len(t.Shape)-1]
	for _, n := range shape {
		count *= n
	}
	texts := make([]string, count)
	for i := range texts {
		raw := t.Data[i*width : (i+1)*width]
		if h.text == 'S' {
			texts[i] = string(bytes.TrimRight(raw, "\x00"))
			continue
		}
		var text []byte
		for ; len(raw) >= 4; raw = raw[4:] {
			text = utf8.AppendRune(text, rune(binary.LittleEndian.Uint32(raw)))
		}
		texts[i] = string(bytes.TrimRight(text, "\x00"))
	}
	return PackText(texts, shape...)
}

// PackText returns texts as a tensor of bytes: with one more dimension at the end, along which the
// UTF-8 of each text stands, filled up with zeros. So shards and files of cases hold text, for
// which safetensors has no dtype. Errors: ErrMalformed for text that is not UTF-8 or has a zero.
func PackText(texts []string, shape ...int64) (Tensor, error) {
	width := 1
	for i, text := range texts {
		if !utf8.ValidString(text) || bytes.IndexByte([]byte(text), 0) >= 0 {
			return Tensor{}, faultf(ErrMalformed, "text %d is %.64q: want UTF-8 without zeros", i, text)
		}
		width = max(width, len(text))
	}
	if int64(width)*int64(len(texts)) > DefaultMaxTensorBytes {
		return Tensor{}, faultf(ErrLimit, "%d texts of up to %d bytes: the limit is %d in all", len(texts), width, DefaultMaxTensorBytes)
	}
	data := make([]byte, width*len(texts))
	for i, text := range texts {
		copy(data[i*width:], text)
	}
	return New(data, append(append([]int64{}, shape...), int64(width))...)
}

// UnpackText returns the texts that [PackText] stored.
func UnpackText(t Tensor) ([]string, error) {
	if t.DType != Uint8 || len(t.Shape) == 0 || t.Shape[len(t.Shape)-1] < 1 {
		return nil, faultf(ErrMalformed, "%s %v is no text: want uint8 with the bytes of each text along the last dimension", t.DType, t.Shape)
	}
	width := int(t.Shape[len(t.Shape)-1])
	texts := make([]string, 0, len(t.Data)/width)
	for at := 0; at < len(t.Data); at += width {
		raw := bytes.TrimRight(t.Data[at:at+width], "\x00")
		if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
			return nil, faultf(ErrMalformed, "text %d is %.64q: want UTF-8, filled up with zeros", len(texts), raw)
		}
		texts = append(texts, string(raw))
	}
	return texts, nil
}
