package tensorfile

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxTextWidth bounds the characters of one text of an npy array.
const maxTextWidth = 1 << 16

// textDescr reads the dtype of text: S and a number of bytes, or U and a number of characters of
// four bytes.
func (h *npyHeader) textDescr(p *pyParser, s, order, kind string) {
	width, err := strconv.ParseInt(kind[1:], 10, 64)
	if err != nil || width < 0 || width > maxTextWidth || kind[0] == 'U' && order != "<" && order != ">" {
		p.abort(tensor.Errorf(tensor.ErrUnsupported, "npy: dtype %.64q: want text of at most %d characters", s, maxTextWidth))
		return
	}
	h.text, h.width, h.info.DType = kind[0], width, tensor.Uint8
	if kind[0] == 'U' {
		h.info.DType, h.bigEndian = tensor.Uint32, order == ">"
	}
}

// asBytes returns text as [PackText] stores it. t has the characters of each text along its last
// dimension, as in the file.
func (h npyHeader) asBytes(t tensor.Tensor) (tensor.Tensor, error) {
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
	return tensor.PackText(texts, shape...)
}
