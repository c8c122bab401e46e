package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// response is a complete response before it is sent, so that it can be tagged, compressed and
// saved. A stream sends itself.
type response struct {
	status int
	kind   string      // Content-Type; empty: no body
	body   []byte      // exact
	header http.Header // more headers, may be nil
	stream func(w http.ResponseWriter, r *request) error

	tag  string        // of body, as etag returns it; empty: not known yet
	tags []string      // the header with the tag of the plain body; nil: not known yet
	gzip func() []byte // the body compressed; nil: not remembered
}

// sentAgain returns a response that remembers its tag and its compressed body. Its body must not
// change.
func (a *response) sentAgain() *response {
	body := a.body
	a.tag, a.gzip = etag(body), sync.OnceValue(func() []byte { return compressed(body) })
	a.tags = a.tagOf("")
	return a
}

// How long a response to GET may be cached. All of them depend on the caller.
const (
	revalidate = "private, no-cache"                 // cache, but revalidate
	forever    = "private, max-age=86400, immutable" // content of a digest never changes
	never      = "no-store"
)

// Values of headers, made once. Adding to one makes another slice, since these are full.
var (
	varyCoding = []string{"Accept-Encoding"}
	noStore    = []string{never}
	noCache    = []string{revalidate}
	ofJSON     = []string{jsonType}
)

// typeOf returns Content-Type for a kind.
func typeOf(kind string) []string {
	if kind == jsonType {
		return ofJSON
	}
	return []string{kind}
}

// answer returns a value as JSON.
func answer(status int, value any) (*response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &response{status: status, kind: jsonType, body: append(body, '\n')}, nil
}

// ok returns a value as JSON with status 200.
func ok(value any) (*response, error) { return answer(http.StatusOK, value) }

// done returns a response without content.
func done() (*response, error) { return &response{status: http.StatusNoContent}, nil }

// with adds a header.
func (a *response) with(key, value string) *response {
	if a.header == nil {
		a.header = make(http.Header)
	}
	a.header.Set(key, value)
	return a
}

// countedBody is how long a body may be whose length net/http finds out itself, since it fits in
// the buffer of a response. With more than eight headers, making and copying the map takes twice as long.
const countedBody = 2 << 10

// send writes a response. Successful reads get an ETag of their bytes, and clients that already
// have them get 304.
func send(w http.ResponseWriter, r *http.Request, a *response) {
	header := w.Header()
	for key, values := range a.header {
		header[key] = values
	}
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	body, coding := encoded(r, a)
	if a.kind == jsonType && header["Vary"] == nil {
		header["Vary"] = varyCoding
	}
	switch {
	case !reading || a.status != http.StatusOK:
		header["Cache-Control"] = noStore
	default:
		if header["Cache-Control"] == nil {
			header["Cache-Control"] = noCache
		}
		tag := a.tagOf(coding)
		header[etagHeader] = tag
		if held := r.Header["If-None-Match"]; held != nil && matches(held, tag[0]) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if a.kind != "" {
		header["Content-Type"] = typeOf(a.kind)
		if len(body) > countedBody || r.Method == http.MethodHead {
			header["Content-Length"] = []string{strconv.Itoa(len(body))}
		}
	}
	if coding != "" {
		header.Set("Content-Encoding", coding)
	}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone if this fails
	}
}

// etagHeader is the name of ETag as net/http has it in maps.
const etagHeader = "Etag"

// tagOf returns ETag for a coding of the body. It is a strong tag: equal tags mean equal bytes on
// the wire.
func (a *response) tagOf(coding string) []string {
	if a.tags != nil && coding == "" {
		return a.tags
	}
	tag := a.tag
	if tag == "" {
		tag = etag(a.body)
	}
	if coding != "" {
		tag += "-" + coding
	}
	return []string{`"` + tag + `"`}
}

// etag returns the part of a tag that depends on the body.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// matches reports whether If-None-Match has a tag, by weak comparison as in RFC 9110.
func matches(values []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}

// minCompressed is the minimum size of a body that is compressed.
const minCompressed = 1 << 10

// encoded compresses the body if the client accepts that.
func encoded(r *http.Request, a *response) (body []byte, coding string) {
	compressible := a.kind == jsonType && len(a.body) >= minCompressed
	if !compressible || !prefers(r.Header.Values("Accept-Encoding"), "gzip", "identity") {
		return a.body, ""
	}
	if a.gzip != nil {
		return a.gzip(), "gzip"
	}
	return compressed(a.body), "gzip"
}

func compressed(body []byte) []byte {
	var buffer bytes.Buffer
	zip := zips.Get().(*gzip.Writer)
	defer zips.Put(zip)
	zip.Reset(&buffer)
	_, _ = zip.Write(body) // to a buffer
	_ = zip.Close()        // as above
	return buffer.Bytes()
}

// zips pools compressors, because each has a megabyte of tables.
var zips = sync.Pool{New: func() any {
	zip, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid constant
	return zip
}}
