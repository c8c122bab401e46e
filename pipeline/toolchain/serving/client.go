package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// client asks a server for one model. It is safe for concurrent use.
type client interface {
	// ready returns nil once the server answers requests for the model.
	ready(ctx context.Context) error
	// about returns what the server tells of itself and of the model. Fields that the protocol does not have are empty.
	about(ctx context.Context) (About, error)
	// infer sends the inputs of one case and returns the outputs of the interface, in its order. id is unique among all requests. An answer
	// that names another id is an error.
	infer(ctx context.Context, id string, inputs []named) ([]tensor.Tensor, error)
	// queued returns how long requests have waited in the server until now, and how many there were; 0 of 0 if it does not tell.
	queued(ctx context.Context) (queue, error)
	// hangUp closes the connections. A server that ends may wait for these.
	hangUp()
}

// queue is how long requests waited before they ran.
type queue struct {
	total time.Duration
	count int64
}

// About is a server's description of itself and of a model.
type About struct {
	Server  string `json:"server,omitempty"`  // "triton"
	Version string `json:"version,omitempty"` // of the server
	// Versions of the model are ready.
	Versions []string `json:"versions,omitempty"`
	// Inputs and Outputs are nil if the server does not tell them.
	Inputs  []Told `json:"inputs,omitempty"`
	Outputs []Told `json:"outputs,omitempty"`
	// RepeatsIDs is true if answers have the id of their request.
	RepeatsIDs bool `json:"repeatsIds,omitempty"`
}

// Told is an input or output as a server describes it, in the words of the Open Inference Protocol.
type Told struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

// readyPause is between two questions whether a server is ready.
const readyPause = 20 * time.Millisecond

// web sends requests over HTTP. It follows no proxy and no redirect: the cases would go to a server that nobody named.
type web struct {
	base   string
	client *http.Client
}

func (w *web) hangUp() { w.client.CloseIdleConnections() }

// statusError is an answer with a status other than 200.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d: %s", e.status, e.text)
}

// do sends a request and returns the body of an answer with status 200.
func (w *web) do(ctx context.Context, method, path string, header http.Header, body []byte) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, nil, withoutAddress(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, tensor.DefaultMaxTensorBytes+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(data) > tensor.DefaultMaxTensorBytes:
		return nil, nil, fmt.Errorf("the answer has more than %d bytes", tensor.DefaultMaxTensorBytes)
	case response.StatusCode != http.StatusOK:
		return nil, nil, &statusError{response.StatusCode, shortText(data)}
	}
	return data, response.Header, nil
}

// withoutAddress returns an error of a request without its method and address, which repeat in every message.
func withoutAddress(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// shortText is the beginning of an answer that is no result.
func shortText(data []byte) string {
	var told struct {
		Error any `json:"error"`
	}
	if json.Unmarshal(data, &told) == nil && told.Error != nil {
		data = []byte(fmt.Sprint(told.Error))
	}
	const most = 300
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(data[:min(len(data), most)]), "?")), " ")
}

// getJSON decodes an answer into v.
func (w *web) getJSON(ctx context.Context, path string, v any) error {
	data, _, err := w.do(ctx, http.MethodGet, path, nil, nil)
	if err == nil {
		err = decodeJSON(data, v)
	}
	return err
}

// inOrder returns the outputs of the interface, each of the right dtype and with as many dimensions as it has there, of those that a server answered with.
func inOrder(c Config, answered map[string]tensor.Tensor) ([]tensor.Tensor, error) {
	all := make([]tensor.Tensor, 0, len(c.Outputs))
	for _, v := range c.Outputs {
		t, ok := answered[v.Name]
		if !ok {
			var have []string
			for name := range answered {
				have = append(have, strconv.Quote(name))
			}
			slices.Sort(have)
			return nil, fmt.Errorf("the answer has no output %q: it has %s", v.Name, strings.Join(have, ", "))
		}
		if t.DType != v.DType || v.Shape != nil && len(t.Shape) != len(v.Shape) {
			return nil, fmt.Errorf("output %q is %s %v: the model has %s %v", v.Name, t.DType, t.Shape, v.DType, v.Shape)
		}
		all = append(all, t)
	}
	return all, nil
}

// ids compares the ids of answers with those of requests. Servers need not repeat ids.
type ids struct{ repeated atomic.Bool }

// same refuses an answer to another request, and one without an id from a server that repeats ids.
func (i *ids) same(sent, answered string) error {
	switch {
	case answered == sent:
		i.repeated.Store(true)
	case answered != "":
		return fmt.Errorf("the answer is to request %.60q, and %q was sent: something between repeats earlier answers", answered, sent)
	case i.repeated.Load():
		return errors.New("the answer names no request, and earlier ones did: something between changes answers")
	}
	return nil
}
