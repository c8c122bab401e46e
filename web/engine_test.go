package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/web/page"
)

// withContent lets pages show files, an image and a text of each case, and labels of five cases.
func withContent(c *page.Config) {
	c.Content = &page.Content{
		Files: func(context.Context, string, registry.Digest) ([]artifact.File, error) {
			return []artifact.File{
				{Path: "model.onnx", Size: 2048, Digest: registry.Digest("sha256:" + strings.Repeat("a", 64))},
				{Path: "vocab.txt", Size: 10, Digest: registry.Digest("sha256:" + strings.Repeat("b", 64)), Kind: artifact.FileAsset}}, nil
		},
		Inputs: func(_ context.Context, at page.CaseAt) ([]page.CaseInput, error) {
			if at.Sources != "staging/vision/digits/sources" || at.Case != 3 {
				return nil, registry.Errorf(registry.CodeNotFound, "no case %d in %s", at.Case, at.Sources)
			}
			return []page.CaseInput{{Name: "image", PNG: []byte("\x89PNG")}, {Name: "text", Text: "the <invoice> is wrong"}}, nil
		},
		Labels: func(context.Context, string, registry.Digest) ([]int64, error) { return []int64{7, 7, 1, 1, 4}, nil },
	}
}

// column is a column of per-case figures.
func column[T tensor.Scalar](t *testing.T, values ...T) tensor.Tensor {
	t.Helper()
	of, err := tensor.New(values, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// reported attaches a report to the first engine of a release that has per-case figures and a worst case.
func (w *world) reported(t *testing.T, release artifact.Release) artifact.Engine {
	t.Helper()
	e := release.Engines[0]
	figures, left, err := percase.Figures{Accuracy: accuracy.Columns{
		"lost": column(t, 1.0, 1, 0, 0, 0), "won": column(t, 0.0, 0, 1, 0, 0), "right": column(t, 0.0, 0, 1, 1, 1), "answers": column(t, int64(1), 1, 1, 1, 1),
		"answer.reference": column(t, int32(7), 7, 2, 1, 4), "answer.engine": column(t, int32(1), 1, 1, 1, 4)},
	}.Marshal()
	if err != nil || left != "" {
		t.Fatalf("figures: left out %q, error %v", left, err)
	}
	report := w.Seeing(t, registrytest.Report(release, e, evidence.VerdictPass))
	report.FinishedOn = report.FinishedOn.AddDate(1, 0, 0)
	report.CaseFigures = evidence.NameCaseFigures(figures, "")
	report.Accuracy = &evidence.Accuracy{Metric: "top1", Reference: 1, Engine: 0.6, Count: 5, Cases: 5}
	report.Outputs = map[string]evidence.OutputFigures{"logits": {
		CaseErrors: []int{0, 3, 2}, Worst: &evidence.Worst{Case: 3, Index: []int64{0, 4}, Reference: 1.5, Engine: 1.25}}}
	_, err = w.Attach(t.Context(), api.Attachment{
		Environment: "staging", Model: release.Model, Release: release.Digest, Subject: e.Digest, Figures: figures,
		Bundle: w.Bundle(t, "verifier", evidence.PredicateParity, report, e.Digest)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The page of an engine shows the input of the worst case, and which classes shifted, to readers of the sources; others see
// why they do not.
func TestWorstCases(t *testing.T) {
	t.Parallel()
	w := setup(t, withContent)
	e := w.reported(t, w.Promoted(t, registrytest.Build{}))
	address := modelPage + "/-/engines/" + string(e.Digest) + "?environment=staging"
	got := w.get(everything(), address)
	wantPage(t, "administrator", got, http.StatusOK,
		`src="data:image/png;base64,iVBORw=="`, `alt="image of case 3"`, "the &lt;invoice&gt; is wrong", "1.25",
		"Answers that shifted, by class", `<th scope="row" data-label="Label">1</th><td class="n" data-label="Cases">2</td><td class="n" data-label="Only the reference">0</td><td class="n" data-label="Only the engine">1</td>`,
		`<th scope="row" data-label="Label">7</th><td class="n" data-label="Cases">2</td><td class="n" data-label="Only the reference">2</td>`)
	wantPage(t, "what was taken for what", got, http.StatusOK, "Reference → engine", `7 → 1 <span class="quiet">2 cases</span>`, `2 → 1 <span class="quiet">1 case</span>`)
	wantWithout(t, "administrator", got, `data-label="Label">4</th>`)
	reader := may("**", "vision/digits", storage.PermissionRead)
	got = w.get(reader, address)
	wantPage(t, "who may not read sources", got, http.StatusOK, "You may not read the sources of this model", "1.25")
	wantWithout(t, "who may not read sources", got, "data:image", "invoice", "shifted")

	gone := setup(t, withContent, func(c *page.Config) {
		content := *c.Content
		content.Inputs = func(context.Context, page.CaseAt) ([]page.CaseInput, error) {
			return nil, registry.Errorf(registry.CodeNotFound, "the sources were collected")
		}
		c.Content = &content
	})
	gone.reported(t, gone.Promoted(t, registrytest.Build{}))
	wantPage(t, "sources that are gone", gone.get(everything(), address), http.StatusOK, "The cases cannot be read: the sources were collected")
}

// The page of an engine shows the report of its own runtime, and the verdict of a model server beside it.
func TestThroughServers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	e := release.Engines[0]
	report := w.Seeing(t, registrytest.Report(release, e, evidence.VerdictFail))
	report.FinishedOn = report.FinishedOn.AddDate(1, 0, 0)
	report.Reasons = []evidence.Reason{{Code: "clients", Message: "the server mixes answers"}}
	report.Runtime = evidence.RuntimeUsed{Name: "triton", Version: "2.51.0", Library: report.Runtime.Library,
		Served: &evidence.Served{By: "triton", Version: "2.51.0", Protocol: "oip-rest", Model: "m", Configuration: report.Runtime.Library, BytesSeen: true}}
	w.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, report)
	got := w.get(everything(), modelPage+"/-/engines/"+string(e.Digest)+"?environment=staging")
	wantPage(t, "engine", got, http.StatusOK, "Through triton", "fail, version 2.51.0", e.Toolchain.Name)
	wantWithout(t, "engine", got, "the server mixes answers")
}

// provenance is a predicate as builds sign it.
const provenance = `{"buildDefinition": {"internalParameters": {
	"made": {"quantizer": {"name": "onnxruntime", "version": "1.30.0"}, "quantize": {"method": "static"}},
	"calibration": ["sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"],
	"origin": {"git": {"repository": "https://git.example.com/models", "commit": "0123456789abcdef0123", "ref": "refs/heads/main", "state": "dirty", "changed": ["mlpromote.yaml"], "changedCount": 1}}},
	"resolvedDependencies": [{"name": "source", "digest": {"sha256": "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"}},
		{"name": "toolchain lock", "digest": {"sha256": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"}}]},
	"runDetails": {"builder": {"version": {"mlpromote": "1.2.3"}}, "metadata": {"finishedOn": "2026-11-02T08:00:00Z"},
		"byproducts": [{"name": "quantize int8", "annotations": {"cached": true}}, {"name": "compile"}]}}`

// The page of an engine goes from its bytes to the commit, and from the source to all engines, and has what to copy for
// other tools.
func TestProvenanceAndSnippets(t *testing.T) {
	t.Parallel()
	w := setup(t, withContent)
	release := w.Promoted(t, registrytest.Build{})
	e := release.Engines[2]
	address := modelPage + "/-/engines/" + string(e.Digest) + "?environment=staging"
	wantPage(t, "provenance that says nothing", w.get(everything(), address), http.StatusOK, "commit not known", "the builder does not state the origin of the spec")
	var predicate any
	if err := json.Unmarshal([]byte(provenance), &predicate); err != nil {
		t.Fatal(err)
	}
	w.AttachTo(t, "staging", release, e.Digest, evidence.PredicateProvenance, predicate)
	got := w.get(everything(), address)
	wantPage(t, "engine", got, http.StatusOK,
		"model.onnx", "2 KiB", "an asset", "built by "+e.Toolchain.Name, "quantize int8", "taken from a cache", "toolchain lock", "eeeeeeeeeeee",
		"source file", "dddddddddddd", "commit 0123456789ab", "https://git.example.com/models, refs/heads/main, 1 changed file", "mlpromote.yaml", "differs from the commit",
		"variant int8", "static quantization by onnxruntime 1.30.0, calibrated", `aria-current="true"`, "linux-amd64-v1/fp32",
		"the manifest, which names every file by its digest", "/history?signer=",
		"cosign verify --key builder --insecure-ignore-tlog --allow-http-registry example.com/staging/vision/digits@"+string(e.Digest),
		"cosign verify-attestation --type https://mlpromote.dev/parity/v1 --key verifier",
		"reference: example.com/staging/vision/digits@"+string(e.Image.Digest), "subPath: models",
		"storageUri: oci&#43;native://example.com/staging/vision/digits@"+string(e.Image.Digest),
		"command: [/mlpromote-node, pull, vision/digits]", "&#34;--registry=http://example.com&#34;, &#34;--runtime="+e.Toolchain.Name+":"+e.Toolchain.Version+"&#34;, --out=/engine/model",
		"tritonserver --model-repository=models", "default_model_filename: &#34;model.onnx&#34;", "oras pull --plain-http example.com/")
}

// What a reader copies into a shell has no name of a file that could be a command there: whoever made the engine chose it.
func TestSnippetsWithHostileFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a'; touch ran; '.onnx", "$(touch ran).onnx", "a`touch ran`.onnx", `a".onnx`, "-a.onnx", "a b.onnx"} {
		w := setup(t, withContent, func(c *page.Config) {
			content := *c.Content
			content.Files = func(context.Context, string, registry.Digest) ([]artifact.File, error) {
				return []artifact.File{{Path: name, Size: 1, Digest: registry.Digest("sha256:" + strings.Repeat("a", 64)), Kind: artifact.FileEngine}}, nil
			}
			c.Content = &content
		})
		e := w.Promoted(t, registrytest.Build{}).Engines[0]
		got := w.get(everything(), modelPage+"/-/engines/"+string(e.Digest)+"?environment=staging")
		wantPage(t, name, got, http.StatusOK, "mlpromote trust engine")
		wantWithout(t, name, got, "default_model_filename")
	}
}
