package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// rest speaks the Open Inference Protocol over HTTP (kserve/open-inference-protocol, specification/protocol/inference_rest.md), with the
// extension for binary tensors (triton-inference-server/server, docs/protocol/extension_binary_data.md) where the server lists it.
type rest struct {
	*web
	config Config
	binary atomic.Bool
	ids    ids
}

// lengthHeader is the length of the JSON in front of binary tensors.
const lengthHeader = "Inference-Header-Content-Length"

func (r *rest) path(rest string) string { return "/v2/models/" + url.PathEscape(r.config.Model) + rest }

func (r *rest) ready(ctx context.Context) error {
	_, _, err := r.do(ctx, http.MethodGet, r.path("/ready"), nil, nil)
	if err != nil {
		return err
	}
	var server struct {
		Extensions []string `json:"extensions"`
	}
	if err := r.getJSON(ctx, "/v2", &server); err != nil {
		return err
	}
	r.binary.Store(slices.Contains(server.Extensions, "binary_tensor_data"))
	return nil
}

func (r *rest) about(ctx context.Context) (About, error) {
	var server struct{ Name, Version string }
	if err := r.getJSON(ctx, "/v2", &server); err != nil {
		return About{}, fmt.Errorf("metadata of the server: %w", err)
	}
	var model struct {
		Versions        []string
		Inputs, Outputs []Told
	}
	if err := r.getJSON(ctx, r.path(""), &model); err != nil {
		return About{}, fmt.Errorf("metadata of the model: %w", err)
	}
	return About{Server: server.Name, Version: server.Version, Versions: model.Versions,
		Inputs: model.Inputs, Outputs: model.Outputs, RepeatsIDs: r.ids.repeated.Load()}, nil
}

// restTensor is a tensor in the JSON of the protocol.
type restTensor struct {
	Name       string          `json:"name"`
	Shape      []int64         `json:"shape,omitzero"`
	Datatype   string          `json:"datatype,omitempty"`
	Parameters *restParameters `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

type restParameters struct {
	BinaryDataSize *int64 `json:"binary_data_size,omitempty"`
	BinaryData     bool   `json:"binary_data,omitempty"`
}

type restMessage struct {
	ID      string       `json:"id,omitempty"`
	Inputs  []restTensor `json:"inputs,omitempty"`
	Outputs []restTensor `json:"outputs,omitempty"`
}

func (r *rest) infer(ctx context.Context, id string, inputs []named) ([]tensor.Tensor, error) {
	body, header, err := r.request(id, inputs)
	if err != nil {
		return nil, err
	}
	data, answered, err := r.do(ctx, http.MethodPost, r.path("/infer"), header, body)
	if err != nil {
		return nil, err
	}
	return r.response(id, data, answered)
}

// request writes a request: with binary tensors where the server takes them.
func (r *rest) request(id string, inputs []named) (body []byte, header http.Header, err error) {
	message, binary := restMessage{ID: id}, r.binary.Load()
	var tail []byte
	for _, in := range inputs {
		t := restTensor{Name: in.value.Name, Shape: in.shape(), Datatype: datatype(in.value)}
		if t.Shape == nil {
			t.Shape = []int64{}
		}
		if binary {
			raw, err := in.raw()
			if err != nil {
				return nil, nil, err
			}
			size := int64(len(raw))
			t.Parameters = &restParameters{BinaryDataSize: &size}
			tail = append(tail, raw...)
		} else if t.Data, err = in.appendJSON(nil, false); err != nil {
			return nil, nil, err
		}
		message.Inputs = append(message.Inputs, t)
	}
	for _, out := range r.config.Outputs {
		t := restTensor{Name: out.Name}
		if binary {
			t.Parameters = &restParameters{BinaryData: true}
		}
		message.Outputs = append(message.Outputs, t)
	}
	if body, err = json.Marshal(message); err != nil {
		return nil, nil, err
	}
	header = http.Header{"Content-Type": {"application/json"}}
	if binary {
		header = http.Header{"Content-Type": {"application/octet-stream"}, lengthHeader: {strconv.Itoa(len(body))}}
	}
	return append(body, tail...), header, nil
}

// response reads an answer, whose tensors are binary or JSON.
func (r *rest) response(id string, data []byte, header http.Header) ([]tensor.Tensor, error) {
	var tail []byte
	if length := header.Get(lengthHeader); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(data) {
			return nil, fmt.Errorf("the header %s is %.20q of %d bytes", lengthHeader, length, len(data))
		}
		data, tail = data[:n], data[n:]
	}
	var message restMessage
	if err := decodeJSON(data, &message); err != nil {
		return nil, err
	}
	if err := r.ids.same(id, message.ID); err != nil {
		return nil, err
	}
	answered := make(map[string]tensor.Tensor)
	for _, out := range message.Outputs {
		t, rest, err := r.output(out, tail)
		if err != nil {
			return nil, err
		}
		answered[out.Name], tail = t, rest
	}
	if len(tail) > 0 {
		return nil, fmt.Errorf("the answer has %d bytes that belong to no output", len(tail))
	}
	return inOrder(r.config, answered)
}

// output reads one output, and returns what follows its bytes.
func (r *rest) output(out restTensor, tail []byte) (tensor.Tensor, []byte, error) {
	v, err := ofDatatype(out.Name, out.Datatype)
	if err != nil {
		return tensor.Tensor{}, nil, err
	}
	if out.Shape == nil {
		return tensor.Tensor{}, nil, fmt.Errorf("output %q has no shape", out.Name)
	}
	if out.Parameters == nil || out.Parameters.BinaryDataSize == nil {
		t, err := fromJSON(v, out.Data, out.Shape)
		return t, tail, err
	}
	size := *out.Parameters.BinaryDataSize
	if size < 0 || size > int64(len(tail)) {
		return tensor.Tensor{}, nil, fmt.Errorf("output %q has %d bytes, and the answer has %d", out.Name, size, len(tail))
	}
	t := tensor.Tensor{DType: v.DType, Shape: out.Shape, Data: tail[:size]}
	if err := t.Validate(); err != nil {
		return tensor.Tensor{}, nil, fmt.Errorf("output %q: %w", out.Name, err)
	}
	return t, tail[size:], nil
}

// ofDatatype returns the value of a name of the protocol. Errors: a name that is not known.
func ofDatatype(name, datatype string) (caserun.Slot, error) {
	for dtype, known := range datatypes {
		if known == datatype {
			return caserun.Slot{Name: name, DType: dtype}, nil
		}
	}
	if datatype == datatypeOfText {
		return caserun.Slot{Name: name, DType: validators.Text}, nil
	}
	return caserun.Slot{}, fmt.Errorf("%q is %.20q, which is no type of the protocol", name, datatype)
}

// queued reads the extension for statistics (triton-inference-server/server, docs/protocol/extension_statistics.md).
func (r *rest) queued(ctx context.Context) (queue, error) {
	var stats struct {
		Models []struct {
			Inference struct {
				Queue struct{ Count, NS int64 } `json:"queue"`
			} `json:"inference_stats"`
		} `json:"model_stats"`
	}
	err := r.getJSON(ctx, r.path("/stats"), &stats)
	if told := new(statusError); errors.As(err, &told) {
		return queue{}, nil // it has no statistics
	}
	if err != nil {
		return queue{}, err
	}
	var q queue
	for _, m := range stats.Models {
		q.total, q.count = q.total+time.Duration(m.Inference.Queue.NS), q.count+m.Inference.Queue.Count
	}
	return q, nil
}
