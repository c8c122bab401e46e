package serving

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// engine sends cases to a server, one at a time.
type engine struct {
	server *server
	config Config
	asked  *requests

	inputs  []named
	batched bool // the case keeps its case dimension as a batch of one
	outputs []tensor.Tensor
}

// requests makes ids that no other request has, also not one of another process, which something on the way could have kept.
type requests struct {
	prefix string
	last   atomic.Int64
}

func newRequests() *requests { return &requests{prefix: rand.Text()} }

func (r *requests) next() string { return fmt.Sprintf("%s-%d", r.prefix, r.last.Add(1)) }

// requestTime is how long one request may take.
const requestTime = 2 * time.Minute

func (e *engine) Feed(s *caserun.Shard, c int64) (err error) {
	e.inputs, e.batched, err = inputsOf(e.config, s, c)
	return err
}

// inputsOf reads the inputs of a case.
func inputsOf(config Config, s *caserun.Shard, c int64) (inputs []named, batched bool, err error) {
	for _, slot := range config.Inputs {
		shape, whole := s.Row(slot)
		in := named{slot, tensor.Tensor{DType: slot.DType, Shape: shape, Data: make([]byte, s.RowBytes(slot.Name))}}
		if slot.DType == validators.Text {
			in.tensor.DType = tensor.Uint8
		}
		if err := s.Read(slot.Name, c, in.tensor.Data); err != nil {
			return nil, false, err
		}
		inputs, batched = append(inputs, in), batched || whole
	}
	return inputs, batched, nil
}

func (e *engine) Run(ctx context.Context) (time.Duration, error) {
	took, outputs, err := e.ask(ctx, e.inputs)
	e.outputs = outputs
	return took, err
}

// ask sends a case, and returns how long the answer took.
func (e *engine) ask(ctx context.Context, inputs []named) (time.Duration, []tensor.Tensor, error) {
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	begin := time.Now()
	outputs, err := e.server.infer(limited, e.asked.next(), inputs)
	took := max(time.Since(begin), 1)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil, ctx.Err()
		}
		if isUnavailable(err) {
			return 0, nil, driverproc.Errorf(driverproc.Unavailable, "%v", err)
		}
		if told := new(statusError); !errors.As(err, &told) {
			if ended := e.server.death(); ended != nil {
				return 0, nil, ended
			}
		}
		return 0, nil, driverproc.Errorf(driverproc.ToolFailed, "the server answers: %v", err)
	}
	return took, outputs, nil
}

func (e *engine) Outputs() ([]tensor.Tensor, error) { return stacked(e.outputs, e.batched), nil }

// stacked gives outputs a case dimension of 1 in front, unless they are a batch of one.
func stacked(outputs []tensor.Tensor, batched bool) []tensor.Tensor {
	all := slices.Clone(outputs)
	for i := range all {
		if !batched || len(all[i].Shape) == 0 || all[i].Shape[0] != 1 {
			all[i].Shape = append([]int64{1}, all[i].Shape...)
		}
	}
	return all
}

func (e *engine) Free() { e.outputs = nil }

// reader reads cases for several clients.
type reader struct {
	config Config
	lock   sync.Mutex
}

func (r *reader) read(s *caserun.Shard, c int64) ([]named, bool, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	return inputsOf(r.config, s, c)
}
