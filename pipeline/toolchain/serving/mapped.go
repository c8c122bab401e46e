package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// tfServing is the REST API of TensorFlow Serving (tensorflow/serving, g3doc/api_rest.md), in its column format.
func tfServing(c Config) Mapping {
	inputs := make(map[string]string)
	for _, in := range c.Inputs {
		inputs[in.Name] = "{" + in.Name + "}"
	}
	body, _ := json.Marshal(map[string]any{"inputs": inputs}) // strings can be written
	m := Mapping{Ready: "/v1/models/" + url.PathEscape(c.Model), Predict: "/v1/models/" + url.PathEscape(c.Model) + ":predict",
		Body: string(body), Outputs: make(map[string]string)}
	for _, out := range c.Outputs {
		m.Outputs[out.Name] = "/outputs/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(out.Name)
	}
	if len(c.Outputs) == 1 { // it is then the value itself
		m.Outputs[c.Outputs[0].Name] = "/outputs"
	}
	return m
}

// mapped speaks JSON over HTTP as a mapping describes it. Nothing is known of the server but its answers.
type mapped struct {
	*web
	config  Config
	mapping Mapping
}

func (m *mapped) ready(ctx context.Context) error {
	if m.mapping.Ready == "" {
		_, _, err := m.do(ctx, http.MethodGet, m.mapping.Predict, nil, nil)
		if told := new(statusError); errors.As(err, &told) { // it wants POST
			return nil
		}
		return err
	}
	data, _, err := m.do(ctx, http.MethodGet, m.mapping.Ready, nil, nil)
	if err == nil && m.config.Protocol == ProtocolTFServing {
		var status struct {
			Versions []struct{ State string } `json:"model_version_status"`
		}
		if err = decodeJSON(data, &status); err == nil && (len(status.Versions) == 0 || status.Versions[0].State != "AVAILABLE") {
			err = fmt.Errorf("the model is not available: %s", shortText(data))
		}
	}
	return err
}

func (m *mapped) about(context.Context) (About, error) { return About{}, nil }

func (m *mapped) queued(context.Context) (queue, error) { return queue{}, nil }

func (m *mapped) infer(ctx context.Context, _ string, inputs []named) ([]tensor.Tensor, error) {
	var pairs []string // replaced in one pass: a text can look like the place of another input
	for _, in := range inputs {
		values, err := in.appendJSON(nil, true)
		if err != nil {
			return nil, err
		}
		place := "{" + in.value.Name + "}"
		escaped, _ := json.Marshal(place) // any string can be written
		pairs = append(pairs, strconv.Quote(place), string(values), string(escaped), string(values))
	}
	body := strings.NewReplacer(pairs...).Replace(m.mapping.Body)
	data, _, err := m.do(ctx, http.MethodPost, m.mapping.Predict, http.Header{"Content-Type": {"application/json"}}, []byte(body))
	if err != nil {
		return nil, err
	}
	return m.response(data)
}

// response reads the outputs from an answer.
func (m *mapped) response(data []byte) ([]tensor.Tensor, error) {
	answered := make(map[string]tensor.Tensor)
	for _, out := range m.config.Outputs {
		pointer, ok := m.mapping.Outputs[out.Name]
		if !ok {
			return nil, fmt.Errorf("http: outputs does not tell where %q is in an answer", out.Name)
		}
		found, err := at(data, pointer)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", out.Name, err)
		}
		if answered[out.Name], err = fromJSON(out, found, nil); err != nil {
			return nil, err
		}
	}
	return inOrder(m.config, answered)
}

// at returns what a JSON pointer leads to.
func at(data json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" {
		return data, nil
	}
	for key := range strings.SplitSeq(pointer[1:], "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		i, notNumber := strconv.Atoi(key)
		switch {
		case json.Unmarshal(data, &object) == nil && object != nil:
			next, ok := object[key]
			if !ok {
				return nil, fmt.Errorf("the answer has no %q on the way to %s", key, pointer)
			}
			data = next
		case json.Unmarshal(data, &list) == nil && list != nil:
			if notNumber != nil || i < 0 || i >= len(list) {
				return nil, fmt.Errorf("the answer has no entry %q on the way to %s", key, pointer)
			}
			data = list[i]
		default:
			return nil, fmt.Errorf("the answer ends before %s, or is no JSON", pointer)
		}
	}
	return data, nil
}
