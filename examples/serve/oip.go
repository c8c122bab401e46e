//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
)

const (
	serverName      = "mlpromote-serve"
	binaryExtension = "binary_tensor_data"
	platform        = "onnxruntime_onnx"
)

// handler answers requests for one model.
type handler struct {
	model    *model
	maxBytes int64
	turns    chan struct{} // bounds the requests that are in memory at the same time
}

func newHandler(m *model, maxBytes int64) *handler {
	return &handler{model: m, maxBytes: maxBytes, turns: make(chan struct{}, runtime.GOMAXPROCS(0)+1)}
}

func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"name": serverName, "version": version, "extensions": []string{binaryExtension}})
	})
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	mux.HandleFunc("GET /v2/health/live", ok)
	mux.HandleFunc("GET /v2/health/ready", ok) // it listens when the model is loaded
	mux.HandleFunc("GET /v2/models/{model}", h.named(h.metadata))
	mux.HandleFunc("GET /v2/models/{model}/ready", h.named(ok))
	mux.HandleFunc("POST /v2/models/{model}/infer", h.named(h.inTurn(h.infer)))
	mux.HandleFunc("GET /v1/models/{model}", h.named(h.status))
	mux.HandleFunc("POST /v1/models/{model}", h.inTurn(h.predict))
	mux.HandleFunc("POST /predict", h.inTurn(h.plain))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fmt.Errorf("no %s %s here", r.Method, r.URL.Path))
	})
	return mux
}

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // to a client that left
}

func fail(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

// named calls next if the address has the name of the model.
func (h *handler) named(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("model"); name != h.model.name {
			fail(w, http.StatusNotFound, fmt.Errorf("no model %.80q: this server has %q", name, h.model.name))
			return
		}
		next(w, r)
	}
}

// inTurn reads the body and calls next. A body that next refuses is the client's fault.
func (h *handler) inTurn(next func(w http.ResponseWriter, r *http.Request, body []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case h.turns <- struct{}{}:
			defer func() { <-h.turns }()
		case <-r.Context().Done():
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBytes))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			fail(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", h.maxBytes))
			return
		}
		if err == nil {
			err = next(w, r, body)
		}
		if err != nil {
			fail(w, http.StatusBadRequest, err)
		}
	}
}

// maxJSON is the most bytes of JSON in a request: a number of two bytes takes some 50 in memory.
const maxJSON = 16 << 20

// decode reads one JSON document and keeps numbers as they are written.
func decode(body []byte, into any) error {
	if len(body) > maxJSON {
		return fmt.Errorf("%d bytes of JSON: want at most %d, and larger tensors in binary", len(body), maxJSON)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the request is no JSON of this form: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON of the request")
	}
	return nil
}

type tensorMetadata struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

func (h *handler) metadata(w http.ResponseWriter, _ *http.Request) {
	list := func(values []value) []tensorMetadata {
		var all []tensorMetadata
		for _, v := range values {
			all = append(all, tensorMetadata{v.name, v.kind.name, append([]int64{}, v.shape...)})
		}
		return all
	}
	reply(w, http.StatusOK, map[string]any{"name": h.model.name, "versions": []string{"1"}, "platform": platform,
		"inputs": list(h.model.inputs), "outputs": list(h.model.outputs)})
}

const headerLength = "Inference-Header-Content-Length"

// binaryParameters are parameters of a request, of a tensor, or of an output that is asked for.
type binaryParameters struct {
	Size   *int64 `json:"binary_data_size,omitempty"`
	Data   *bool  `json:"binary_data,omitempty"`
	Output bool   `json:"binary_data_output,omitempty"`
}

type tensorOfOIP struct {
	tensorMetadata
	Parameters *binaryParameters `json:"parameters,omitempty"`
	Data       any               `json:"data,omitempty"`
}

type inferRequest struct {
	ID         string           `json:"id"`
	Parameters binaryParameters `json:"parameters"`
	Inputs     []tensorOfOIP    `json:"inputs"`
	Outputs    []struct {
		Name       string           `json:"name"`
		Parameters binaryParameters `json:"parameters"`
	} `json:"outputs"`
}

func (h *handler) infer(w http.ResponseWriter, r *http.Request, body []byte) error {
	var binary []byte
	if length := r.Header.Get(headerLength); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(body) {
			return fmt.Errorf("%s is %.40q: want at most %d, the bytes of the request", headerLength, length, len(body))
		}
		body, binary = body[:n], body[n:]
	}
	var request inferRequest
	if err := decode(body, &request); err != nil {
		return err
	}
	var in []array
	for _, given := range request.Inputs {
		t, err := h.model.input(given.Name)
		if err != nil {
			return err
		}
		if binary, err = given.read(&t, binary); err != nil {
			return fmt.Errorf("input %s: %w", given.Name, err)
		}
		in = append(in, t)
	}
	if len(binary) > 0 {
		return fmt.Errorf("%d bytes of the request belong to no input", len(binary))
	}
	out, err := h.model.run(in)
	if err != nil {
		return err
	}
	return h.answer(w, request, out)
}

// read sets t, and returns the binary tensors after it.
func (given tensorOfOIP) read(t *array, binary []byte) ([]byte, error) {
	if given.Datatype != t.kind.name {
		return nil, fmt.Errorf("datatype %.40q: want %s", given.Datatype, t.kind.name)
	}
	t.shape = given.Shape
	if given.Parameters == nil || given.Parameters.Size == nil {
		return binary, t.fill(flatten(nil, given.Data))
	}
	size := *given.Parameters.Size
	if size < 0 || size > int64(len(binary)) {
		return nil, fmt.Errorf("binary_data_size is %d: the request has %d bytes left", size, len(binary))
	}
	return binary[size:], t.setBytes(binary[:size:size])
}

// flatten appends the elements of nested lists.
func flatten(to []any, v any) []any {
	list, ok := v.([]any)
	if !ok {
		return append(to, v)
	}
	for _, each := range list {
		to = flatten(to, each)
	}
	return to
}

// answer writes the outputs that were asked for, or all.
func (h *handler) answer(w http.ResponseWriter, request inferRequest, out []array) error {
	var binary []byte
	outputs := []tensorOfOIP{}
	add := func(t array, asBytes bool) error {
		written := tensorOfOIP{tensorMetadata: tensorMetadata{t.name, t.kind.name, t.shape}}
		if asBytes {
			raw := t.bytes()
			size := int64(len(raw))
			written.Parameters, binary = &binaryParameters{Size: &size}, append(binary, raw...)
		} else {
			values, err := t.values()
			if err != nil {
				return err
			}
			written.Data = values
		}
		outputs = append(outputs, written)
		return nil
	}
	for _, wanted := range request.Outputs {
		i := slices.IndexFunc(out, func(t array) bool { return t.name == wanted.Name })
		if i < 0 {
			return fmt.Errorf("no output %.80q: want some of %v", wanted.Name, names(h.model.outputs))
		}
		asBytes := request.Parameters.Output
		if wanted.Parameters.Data != nil {
			asBytes = *wanted.Parameters.Data
		}
		if err := add(out[i], asBytes); err != nil {
			return err
		}
	}
	if len(request.Outputs) == 0 {
		for _, t := range out {
			if err := add(t, request.Parameters.Output); err != nil {
				return err
			}
		}
	}
	document := map[string]any{"model_name": h.model.name, "model_version": "1", "outputs": outputs}
	if request.ID != "" {
		document["id"] = request.ID
	}
	if binary == nil {
		reply(w, http.StatusOK, document)
		return nil
	}
	header, err := json.Marshal(document)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(headerLength, strconv.Itoa(len(header)))
	_, _ = w.Write(append(header, binary...)) // to a client that left
	return nil
}
