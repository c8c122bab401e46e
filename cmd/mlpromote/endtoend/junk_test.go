//go:build cgo && linux

package endtoend

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

const (
	// junkMemory is what a service may hold in memory at most while it reads through junk,
	// with the 64 MiB that it takes to open its key.
	junkMemory = 150 << 20
	junkBundle = 4 << 20 // the largest that is read as evidence
)

// TestJunkEvidence attaches what a token that may only push can: manifests over a bundle of the
// largest size, over bundles of their own, and with long annotations. A promotion and those who
// list the evidence get through it in little memory.
// MLPROMOTE_SOAK asks for more manifests than a listing used to read at all.
func TestJunkEvidence(t *testing.T) {
	t.Parallel()
	number := 300
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		number = 4200
	}
	j := newJunk(t, "--max-referrers", "0")
	j.flood(t, number)
	if err := j.service.Stop(); err != nil {
		t.Fatal(err)
	}
	j.restart(t) // what it took to bring the junk in is of no interest here
	var readers errgroup.Group
	for _, path := range []string{
		"/api/v1/models/" + programtest.Model + "/evidence?environment=staging&ref=" + j.release,
		"/v2/staging/" + programtest.Model + "/referrers/" + j.release,
		"/api/v1/models/" + programtest.Model + "/evidence?environment=staging&ref=1.0.0",
	} {
		readers.Go(func() error { return j.read(path) })
	}
	out := j.Must("promote", "staging/"+programtest.Model+":1.0.0", "--output", "json")
	if err := readers.Wait(); err != nil {
		t.Error(err)
	}
	var promoted struct {
		Decision struct {
			Ignored      []json.RawMessage `json:"ignored"`
			IgnoredCount int               `json:"ignoredCount"`
		} `json:"decision"`
	}
	if err := json.Unmarshal([]byte(out), &promoted); err != nil || promoted.Decision.IgnoredCount != number || len(promoted.Decision.Ignored) > 64 {
		t.Errorf("promote: %d pieces of evidence are ignored and %d described (error %v), want %d and few", promoted.Decision.IgnoredCount, len(promoted.Decision.Ignored), err, number)
	}
	most := peakMemory(t, j.service)
	t.Logf("%d junk manifests: the service held %d MiB in memory", number, most>>20)
	if most > junkMemory {
		t.Errorf("the service held %d MiB in memory, want at most %d", most>>20, junkMemory>>20)
	}
	if err := j.service.Stop(); err != nil {
		t.Error(err)
	}
}

// TestReferrerQuota stops a token at the number of manifests that one caller may attach, until an
// administrator takes them away.
func TestReferrerQuota(t *testing.T) {
	t.Parallel()
	j := newJunk(t, "--max-referrers", "5")
	bundle := j.push(t, junkBundleOf("stranger", 0))
	for n := range 5 {
		if status, body := j.attach(t, bundle, fmt.Sprint(n), ""); status != http.StatusCreated {
			t.Fatalf("manifest %d: got %d %s, want 201", n, status, body)
		}
	}
	if status, body := j.attach(t, bundle, "5", ""); status != http.StatusForbidden || !strings.Contains(body, "DENIED") || !strings.Contains(body, "max-referrers") {
		t.Errorf("one more: got %d %s, want 403 DENIED", status, body)
	}
	j.Must("promote")
	if gone := strings.Fields(j.Must("evidence", "delete", "staging/"+programtest.Model+":1.0.0")); len(gone) != 5 {
		t.Errorf("evidence delete took away %d manifests, want 5", len(gone))
	}
	if left := j.Must("inspect", "staging/"+programtest.Model+":1.0.0"); strings.Contains(left, "ignored") {
		t.Errorf("after evidence delete:\n%s", left)
	}
	if status, body := j.attach(t, bundle, "6", ""); status != http.StatusCreated {
		t.Errorf("after evidence delete: got %d %s, want 201", status, body)
	}
	if err := j.service.Stop(); err != nil {
		t.Error(err)
	}
}

// junk is a service that asks for tokens, with a release that can be promoted.
type junk struct {
	*programtest.Job
	service   *programtest.Service
	admin, ci string // tokens: of one who may do everything, and of one who may only push
	release   string
	size      int64 // of the release's index
}

func newJunk(t *testing.T, flags ...string) *junk {
	t.Helper()
	root, program := t.TempDir(), programtest.Program(t)
	s := programtest.NewService(t, program, root, "COSIGN_PASSWORD=s3cret") // a key with a password takes the full 64 MiB
	s.Flags = append([]string{"--auth"}, flags...)
	dir := filepath.Join(root, "digits")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	j := &junk{service: s, Job: programtest.NewJob(t, program, dir, s.Env...)}
	j.admin = j.Must("token", "create", "admin", "--allow", "administer", "--data", s.Dir)
	j.ci = j.Must("token", "create", "ci", "--allow", "push", "--env", "staging", "--data", s.Dir)
	s.MustStart(t)
	if err := s.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	j.Env = append(append(os.Environ(), s.ClientEnv()...), "MLPROMOTE_TOKEN="+j.admin)
	j.Must("build")
	j.Must("verify")
	var inspected struct {
		Release struct {
			Digest string `json:"digest"`
			Size   int64  `json:"size"`
		} `json:"release"`
	}
	if err := json.Unmarshal([]byte(j.Must("inspect", "--output", "json")), &inspected); err != nil {
		t.Fatal(err)
	}
	j.release, j.size = inspected.Release.Digest, inspected.Release.Size
	return j
}

// restart starts the service again, for the same clients, and waits until it has opened its key,
// which takes 64 MiB by itself.
func (j *junk) restart(t *testing.T) {
	t.Helper()
	j.service.MustStart(t)
	programtest.Eventually(t, "the service opens its key", func() bool {
		most, now := memoryFigure(t, j.service, "VmHWM:"), memoryFigure(t, j.service, "VmRSS:")
		return most > 90<<20 && now < most-32<<20
	})
	j.Env = append(j.Env, "MLPROMOTE_REGISTRY="+j.service.URL)
}

// flood attaches so many manifests to the release: some with a bundle of their own, some with
// long annotations, the rest over one bundle.
func (j *junk) flood(t *testing.T, number int) {
	t.Helper()
	bundle := j.push(t, junkBundleOf("stranger", junkBundle))
	var group errgroup.Group
	group.SetLimit(8)
	for n := range number {
		group.Go(func() error {
			of, annotation := bundle, ""
			switch {
			case n < number/20:
				of = j.push(t, junkBundleOf(fmt.Sprint(n), junkBundle))
			case n < number/10:
				annotation = strings.Repeat("x", 1<<20)
			}
			if status, body := j.attach(t, of, fmt.Sprint(n), annotation); status != http.StatusCreated {
				return fmt.Errorf("manifest %d: got %d %s, want 201", n, status, body)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// junkBundleOf returns a well-formed bundle of about size bytes without a valid signature.
func junkBundleOf(name string, size int) []byte {
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"%s"}}],"predicateType":"https://mlpromote.dev/parity/v1","predicate":{"name":%q,"fill":"%s"}}`,
		digest.FromString(name).Encoded(), name, strings.Repeat("x", max(0, size-4096)*3/4))
	return fmt.Appendf(nil, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},"dsseEnvelope":{"payload":%q,"payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]}}`,
		base64.StdEncoding.EncodeToString([]byte(statement)))
}

// pushed is a descriptor.
type pushed map[string]any

// push stores a blob with the token that may only push.
func (j *junk) push(t *testing.T, content []byte) pushed {
	t.Helper()
	d := digest.FromBytes(content)
	status, body := j.send(t, http.MethodPost, "/v2/staging/"+programtest.Model+"/blobs/uploads/?digest="+d.String(), "application/octet-stream", content)
	if status != http.StatusCreated {
		t.Errorf("push a blob: got %d %s, want 201", status, body)
	}
	return pushed{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "digest": d, "size": len(content)}
}

// attach puts a bundle beside the release.
func (j *junk) attach(t *testing.T, bundle pushed, name, annotation string) (int, string) {
	t.Helper()
	config := pushed{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest.FromString("{}"), "size": 2} // there since the release was signed
	raw, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		"config": config, "layers": []any{bundle}, "annotations": map[string]string{"name": name, "long": annotation},
		"subject": pushed{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": j.release, "size": j.size},
	})
	if err != nil {
		t.Fatal(err)
	}
	return j.send(t, http.MethodPut, "/v2/staging/"+programtest.Model+"/manifests/"+digest.FromBytes(raw).String(), "application/vnd.oci.image.manifest.v1+json", raw)
}

// send does a request with the token that may only push.
func (j *junk) send(t *testing.T, method, path, kind string, body []byte) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, j.service.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", kind)
	request.SetBasicAuth("ci", j.ci)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}

// read gets a path as the administrator.
func (j *junk) read(path string) error {
	request, err := http.NewRequestWithContext(j.T.Context(), http.MethodGet, j.service.URL+path, http.NoBody)
	if err != nil {
		return err
	}
	request.SetBasicAuth("admin", j.admin)
	if strings.HasPrefix(path, "/api/") {
		request.Header.Set("Authorization", "Bearer "+j.admin)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || n > 5<<20) {
		err = fmt.Errorf("GET %s: got %s and %d bytes, want 200 and few", path, response.Status, n)
	}
	return err
}
