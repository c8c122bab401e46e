package capture

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/capture/inference"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
)

// readAll reads the queue until it is closed.
func (r *Recorder) readAll() {
	defer close(r.done)
	for x := range r.queue {
		r.read(x)
	}
}

// read offers the cases of an exchange to the sample.
func (r *Recorder) read(x *exchange) {
	defer x.release()
	defer func() { // a mistake of ours must not end the service of the user
		if v := recover(); v != nil {
			r.skip(skipUnreadable, fmt.Sprint(v))
		}
	}()
	inputs, reason, err := r.tensors(x)
	if err != nil {
		r.skip(reason, err.Error())
		return
	}
	if r.batches == nil {
		r.batches = r.learn(x.metadata, inputs)
	}
	rows, reason, err := r.batches.split(inputs)
	if err != nil {
		r.skip(reason, err.Error())
		return
	}
	shared := r.batches.shared(rows)
	for _, row := range rows {
		r.offer(row, shared)
	}
}

// tensors reads the inputs of an exchange that are recorded, and with them what the service answered.
func (r *Recorder) tensors(x *exchange) (tensors []inference.Tensor, reason string, err error) {
	limits := inference.Limits{Bytes: maxBody}
	data, reason := x.request.take(x.length)
	if reason != "" {
		return nil, reason, registry.Errorf(registry.CodeInvalid, "want a whole request of at most %d bytes", maxBody)
	}
	if tensors, err = inference.Read(x.header, data, inference.Inputs, limits); err != nil {
		return nil, skipUnreadable, err
	}
	if tensors, err = r.selected(tensors); err != nil {
		return nil, skipInputs, err
	}
	if x.answer == nil {
		return tensors, "", nil
	}
	data, reason = x.answer.take(-1)
	if reason != "" {
		return nil, reason, registry.Errorf(registry.CodeInvalid, "want a whole answer of at most %d bytes", maxBody)
	}
	outputs, err := inference.Read(x.answered, data, inference.Outputs, limits)
	if err != nil {
		return nil, skipUnreadable, registry.Errorf(registry.CodeInvalid, "answer: %w", err)
	}
	for _, output := range outputs {
		output.Name = cases.ServedPrefix + output.Name
		tensors = append(tensors, output)
	}
	return tensors, "", nil
}

// selected leaves the inputs that are recorded.
func (r *Recorder) selected(inputs []inference.Tensor) ([]inference.Tensor, error) {
	if r.options.Inputs == nil {
		return inputs, nil
	}
	var out []inference.Tensor
	for _, name := range r.options.Inputs {
		at := slices.IndexFunc(inputs, func(t inference.Tensor) bool { return t.Name == name })
		if at < 0 {
			return nil, registry.Errorf(registry.CodeInvalid, "no input %q, which --input names: there are %s", name, names(inputs))
		}
		out = append(out, inputs[at])
	}
	return out, nil
}

func names(tensors []inference.Tensor) string {
	text := ""
	for i, t := range tensors {
		if i > 0 {
			text += ", "
		}
		text += t.Name
	}
	return text
}

// offer offers a case to the sample, where it is like those before. shared has sums of its tensors.
func (r *Recorder) offer(row cases.Row, shared map[string]cases.Sum) {
	if r.options.Interface != nil {
		if err := row.Check(*r.options.Interface, r.options.Inputs); err != nil {
			r.skip(skipInputs, err.Error())
			return
		}
	}
	signature := row.Signature()
	if r.signature == "" {
		r.signature = signature
	}
	if signature != r.signature {
		r.skip(skipInputs, fmt.Sprintf("it has %s: the other cases have %s", signature, r.signature))
		return
	}
	r.offered++
	switch r.sampler.Offer(sumOf(row, shared), row) {
	case cases.Duplicate:
		r.duplicates++
		return
	case cases.TooLarge:
		r.skip(skipLarge, fmt.Sprintf("a case has %d bytes, and all may have %d", row.Bytes(), r.options.MaxBytes))
		return
	}
	if n := r.sampler.Len(); n >= max(10*r.told, 1) && n > r.told {
		r.told = n
		r.options.Note("%s recorded so far", registry.Count(n, "case"))
	}
}
