package tensor

import (
	"bytes"
	"unicode/utf8"
)

// DefaultMaxTensorBytes is the most bytes of a tensor that is made of untrusted data.
const DefaultMaxTensorBytes = 2 << 30

// PackText returns texts as a tensor of bytes: with one more dimension at the end, along which the
// UTF-8 of each text stands, filled up with zeros. So shards and files of cases hold text, for
// which safetensors has no dtype. Errors: ErrMalformed for text that is not UTF-8 or has a zero.
func PackText(texts []string, shape ...int64) (Tensor, error) {
	width := 1
	for i, text := range texts {
		if !utf8.ValidString(text) || bytes.IndexByte([]byte(text), 0) >= 0 {
			return Tensor{}, Errorf(ErrMalformed, "text %d is %.64q: want UTF-8 without zeros", i, text)
		}
		width = max(width, len(text))
	}
	if int64(width)*int64(len(texts)) > DefaultMaxTensorBytes {
		return Tensor{}, Errorf(ErrLimit, "%d texts of up to %d bytes: the limit is %d in all", len(texts), width, DefaultMaxTensorBytes)
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
		return nil, Errorf(ErrMalformed, "%s %v is no text: want uint8 with the bytes of each text along the last dimension", t.DType, t.Shape)
	}
	width := int(t.Shape[len(t.Shape)-1])
	texts := make([]string, 0, len(t.Data)/width)
	for at := 0; at < len(t.Data); at += width {
		raw := bytes.TrimRight(t.Data[at:at+width], "\x00")
		if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
			return nil, Errorf(ErrMalformed, "text %d is %.64q: want UTF-8, filled up with zeros", len(texts), raw)
		}
		texts = append(texts, string(raw))
	}
	return texts, nil
}
