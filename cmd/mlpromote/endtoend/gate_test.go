//go:build cgo && linux

package endtoend

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestPushOfCode pushes, with a token that may only push, engines that another program changed: the
// service looks at their bytes before it stores their manifests.
func TestPushOfCode(t *testing.T) {
	t.Parallel()
	j := newJunk(t)
	_, raw := j.get(t, "/v2/staging/"+programtest.Model+"/manifests/"+j.release)
	engine := j.engineOf(t, raw)
	for name, c := range map[string]struct {
		content string
		native  bool
		says    string // empty: it is stored
	}{
		"the same bytes of another kind": {"weights of another kind", false, ""},
		"a pickle":                       {"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.", false, "a Python pickle"},
		"a pickle labelled as native":    {"cos\nsystem\n(S'true'\ntR.", true, "a Python pickle"},
		"native code without a label":    {"\x7fELF\x02\x01\x01\x00", false, "labelled native-code"},
		"native code with its label":     {"\x7fELF\x02\x01\x01\x00", true, ""},
	} {
		changed := j.changed(t, engine, c.content, c.native)
		path := "/v2/staging/" + programtest.Model + "/manifests/" + digest.FromBytes(changed).String()
		status, body := j.send(t, http.MethodPut, path, "application/vnd.oci.image.manifest.v1+json", changed)
		stored, _ := j.get(t, path)
		if c.says == "" && (status != http.StatusCreated || stored != http.StatusOK) {
			t.Errorf("%s: got %d %s, then %d, want 201 and 200", name, status, body, stored)
		}
		if c.says != "" && (status != http.StatusUnsupportedMediaType || !strings.Contains(body, c.says) || stored != http.StatusNotFound) {
			t.Errorf("%s: got %d %s, then %d, want 415 with %q, and 404", name, status, body, stored, c.says)
		}
	}
	if err := j.service.Stop(); err != nil {
		t.Error(err)
	}
}

// get fetches a manifest as the administrator.
func (j *junk) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, j.service.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("admin", j.admin)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// engineOf fetches the manifest of the first engine of an index.
func (j *junk) engineOf(t *testing.T, index string) string {
	t.Helper()
	var of struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal([]byte(index), &of); err != nil {
		t.Fatal(err)
	}
	for _, m := range of.Manifests {
		if m.Annotations["dev.mlpromote.role"] == "engine" {
			_, raw := j.get(t, "/v2/staging/"+programtest.Model+"/manifests/"+m.Digest)
			return raw
		}
	}
	t.Fatalf("no engine in %s", index)
	return ""
}

// changed is a manifest with other bytes in place of its first file, which are pushed.
func (j *junk) changed(t *testing.T, manifest, content string, native bool) []byte {
	t.Helper()
	blob := j.push(t, []byte(content))
	var m map[string]any
	if err := json.Unmarshal([]byte(manifest), &m); err != nil {
		t.Fatal(err)
	}
	layer := slices.Clone(m["layers"].([]any))[0].(map[string]any)
	layer["digest"], layer["size"] = blob["digest"], blob["size"]
	if native {
		m["annotations"].(map[string]any)["dev.mlpromote.native-code"] = "true"
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
