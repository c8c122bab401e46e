package capture

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/pipeline/capture/inference"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
)

// Bounds of what a service is asked for.
const (
	metadataTime  = 5 * time.Second
	metadataBytes = 1 << 20
)

// learn finds out which tensors have a batch for their first dimension: those whose first size is open or 1
// in the model, or else in what the service says about it. Where neither is known, either all have one, if
// the first sizes of the inputs are equal, or none has.
func (r *Recorder) learn(path string, tensors []inference.Tensor) *batching {
	b := &batching{known: make(map[string]bool), rest: true}
	if iface := r.options.Interface; iface != nil {
		for _, input := range iface.Inputs {
			b.known[input.Name] = len(input.Shape) > 0 && iface.Allows(input.Shape[0], 1)
		}
	} else if said, err := r.metadata(path); err == nil {
		said.batches(b)
	}
	first, equal := int64(-1), true
	for _, t := range tensors {
		if _, ok := b.known[t.Name]; ok || !isInput(t.Name) {
			continue
		}
		if r.options.Interface == nil {
			r.warnOnce("shapes",
				"the service does not report the shape of input %q: cases are rows of the first dimension if all inputs agree in it; "+
					"MODEL.onnx or -f mlpromote.yaml has it", t.Name)
		}
		switch {
		case len(t.Shape) == 0, first >= 0 && t.Shape[0] != first:
			equal = false
		default:
			first = t.Shape[0]
		}
	}
	b.rest = equal && b.anyBatch()
	return b
}

// anyBatch reports whether a tensor of unknown shape can have a batch: none can where no known input has.
func (b *batching) anyBatch() bool {
	for _, batched := range b.known {
		if batched {
			return true
		}
	}
	return len(b.known) == 0
}

// serviceMetadata is what a service says about a model.
type serviceMetadata struct {
	Inputs  []tensorMetadata `json:"inputs"`
	Outputs []tensorMetadata `json:"outputs"`
}

type tensorMetadata struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
}

// batches adds what is known of the tensors. An open size is -1.
func (s serviceMetadata) batches(b *batching) {
	has := func(t tensorMetadata) bool { return len(t.Shape) > 0 && (t.Shape[0] < 0 || t.Shape[0] == 1) }
	for _, t := range s.Inputs {
		b.known[t.Name] = has(t)
	}
	for _, t := range s.Outputs {
		b.known[cases.ServedPrefix+t.Name] = has(t)
	}
}

// metadata asks the service about the model, without the credentials of any client.
func (r *Recorder) metadata(path string) (serviceMetadata, error) {
	ctx, cancel := context.WithTimeout(context.Background(), metadataTime)
	defer cancel()
	at := r.options.Upstream.JoinPath()
	at.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return serviceMetadata{}, err
	}
	req.URL = at.JoinPath(path)
	answer, err := r.proxy.Transport.RoundTrip(req)
	if err != nil {
		return serviceMetadata{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return serviceMetadata{}, registry.Errorf(registry.CodeUnavailable, "status %d", answer.StatusCode)
	}
	var out serviceMetadata
	err = json.NewDecoder(io.LimitReader(answer.Body, metadataBytes)).Decode(&out)
	return out, err
}
