package serving

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Mapping describes an endpoint with JSON in requests and answers.
type Mapping struct {
	Ready   string `json:"ready" yaml:"ready" doc:"Path that answers with status 200 once the server has the model. Default: path, with the first case"`
	Predict string `json:"path" yaml:"path,required" doc:"Path that takes the inputs by POST, such as /predict"`
	// Body is JSON in which the text "{NAME}" stands for the values of input NAME.
	Body string `json:"body" yaml:"body,required" doc:"JSON of a request, in which \"{NAME}\" stands for the values of an input as nested lists"`
	// Outputs has, by output, the JSON pointer (RFC 6901) of its values in an answer.
	Outputs map[string]string `json:"outputs" yaml:"outputs,required" doc:"For each output, where its values are in the answer, as a JSON pointer: {logits: /predictions}"`
}

// Check returns the first mistake in a mapping, or nil.
func (m Mapping) Check() error {
	for name, path := range map[string]string{"ready": m.Ready, "path": m.Predict} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return fmt.Errorf("%s %q: want a path that begins with /", name, path)
		}
	}
	if !json.Valid([]byte(m.Body)) {
		return fmt.Errorf("body %.60q: want JSON", m.Body)
	}
	for output, pointer := range m.Outputs {
		if pointer != "" && !strings.HasPrefix(pointer, "/") {
			return fmt.Errorf("outputs: %s: %q: want a JSON pointer, such as /predictions", output, pointer)
		}
	}
	return nil
}
