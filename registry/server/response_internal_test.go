package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A client knows the length of every answer before it ends, whether this package counts the bytes or
// net/http does.
func TestAnswersHaveALength(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, countedBody - 1, countedBody, countedBody + 1, 1 << 20} {
		body := bytes.Repeat([]byte("x"), size)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			send(w, r, &response{status: http.StatusOK, kind: "text/plain", body: body})
		}))
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			if method != http.MethodHead && !bytes.Equal(got, body) || err != nil || answer.Body.Close() != nil {
				t.Errorf("%s of %d bytes: got %d (%v)", method, size, len(got), err)
			}
			if answer.ContentLength != int64(size) || len(answer.TransferEncoding) > 0 {
				t.Errorf("%s of %d bytes: got length %d, encoding %v", method, size, answer.ContentLength, answer.TransferEncoding)
			}
		}
		s.Close()
	}
}
