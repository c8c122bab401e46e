package inference

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Read reads the tensors of one side of a body, in its order. Errors: CodeInvalid for a body that
// violates the protocol, exceeds limits, or has tensors of texts (BYTES).
func Read(header http.Header, body []byte, side Side, limits Limits) ([]Tensor, error) {
	body, err := unpack(header.Values("Content-Encoding"), body, limits.Bytes)
	if err != nil {
		return nil, err
	}
	text, binary := body, []byte(nil)
	if length := header.Get(HeaderLength); length != "" {
		n, err := strconv.ParseInt(strings.TrimSpace(length), 10, 64)
		switch {
		case err != nil || n < 0 || n > int64(len(body)):
			return nil, registry.Errorf(registry.CodeInvalid, "%s is %.40q: want a number from 0 to the %d bytes of the body", HeaderLength, length, len(body))
		case n == 0:
			return nil, registry.Errorf(registry.CodeInvalid, "the body is the data of a tensor without its JSON header, so it has no shape")
		}
		text, binary = body[:n], body[n:]
	}
	entries, err := readEntries(text, side)
	if err != nil {
		return nil, err
	}
	return tensorsOf(entries, binary, side, limits)
}

// unpack undoes the encodings of a body, the last one first.
func unpack(values []string, body []byte, limit int64) ([]byte, error) {
	var encodings []string
	for _, value := range values {
		for encoding := range strings.SplitSeq(value, ",") {
			if encoding = strings.ToLower(strings.TrimSpace(encoding)); encoding != "" && encoding != "identity" {
				encodings = append(encodings, encoding)
			}
		}
	}
	if len(encodings) > 1 {
		return nil, registry.Errorf(registry.CodeInvalid, "the body is encoded %d times: want one encoding at most", len(encodings))
	}
	if int64(len(body)) > limit {
		return nil, tooLarge(limit)
	}
	if len(encodings) == 0 {
		return body, nil
	}
	r, err := decoder(encodings[0], bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	unpacked, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "the body does not unpack as %s: %w", encodings[0], err)
	case int64(len(unpacked)) > limit:
		return nil, tooLarge(limit)
	}
	return unpacked, nil
}

func decoder(encoding string, r io.Reader) (io.Reader, error) {
	var out io.Reader
	var err error
	switch encoding {
	case "gzip", "x-gzip":
		out, err = gzip.NewReader(r)
	case "deflate":
		out, err = zlib.NewReader(r)
	default:
		return nil, registry.Errorf(registry.CodeInvalid, "the body is encoded as %.40q: want gzip or deflate", encoding)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "the body does not unpack as %s: %w", encoding, err)
	}
	return out, nil
}

func tooLarge(limit int64) error {
	return registry.Errorf(registry.CodeInvalid, "the body has more than %d bytes", limit)
}

// readEntries reads one list of the JSON document, entry after entry, so that a list of a million empty
// ones costs nothing.
func readEntries(text []byte, side Side) ([]entry, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := expect(d, '{'); err != nil {
		return nil, err
	}
	var entries []entry
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		if key != string(side) {
			var other json.RawMessage
			if err := d.Decode(&other); err != nil {
				return nil, malformed(err)
			}
			continue
		}
		if entries != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "%s occurs twice", side)
		}
		if entries, err = list(d, side); err != nil {
			return nil, err
		}
	}
	if err := expect(d, '}'); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, registry.Errorf(registry.CodeInvalid, "bytes follow the JSON document, and no %s states its length", HeaderLength)
	}
	if len(entries) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "no %s", side)
	}
	return entries, nil
}

func list(d *json.Decoder, side Side) ([]entry, error) {
	if err := expect(d, '['); err != nil {
		return nil, err
	}
	entries := []entry{}
	for d.More() {
		if len(entries) == maxTensors {
			return nil, registry.Errorf(registry.CodeInvalid, "more than %d %s", maxTensors, side)
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, malformed(err)
		}
		entries = append(entries, e)
	}
	return entries, expect(d, ']')
}

func expect(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return malformed(err)
	}
	if token != want {
		return registry.Errorf(registry.CodeInvalid, "the JSON of the body does not follow the protocol: want %s", want)
	}
	return nil
}

func malformed(err error) error {
	return registry.Errorf(registry.CodeInvalid, "the JSON of the body: %.200s", err.Error())
}
