package capture

import (
	"math/rand/v2"

	"mlpromote.dev/mlpromote/pipeline/cases"
)

// New checks the options, opens the folder, and starts to read what will be forwarded. The caller closes
// the recorder. Errors: CodeInvalid.
func New(o Options) (*Recorder, error) {
	folder, err := cases.Look(o.To, o.Add)
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		options: o, queue: make(chan *exchange, maxQueue), done: make(chan struct{}), model: o.Model,
		random:  rand.New(rand.NewPCG(o.Seed, 0x7265636f7264)), //nolint:gosec // the same share for the same seed is the point
		skipped: make(map[string]*Skipped), warned: make(map[string]bool),
		reading: reading{
			signature: folder.Signature,
			sampler:   cases.Sampler{Most: o.Count, MaxBytes: o.MaxBytes, Seed: o.Seed},
		},
	}
	r.budget.left.Store(maxCopies)
	r.proxy = r.newProxy()
	err = cases.EachRow(folder.Shards, func(row cases.Row) error {
		r.sampler.Know(sumOf(row, nil))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.writer, err = cases.NewPrivateWriter(o.To, folder.Next); err != nil {
		return nil, err
	}
	go r.readAll()
	return r, nil
}

// Close reads the requests forwarded until now, and writes the sample. Nothing is recorded afterwards. Errors:
// from the file system, and then no case is written.
func (r *Recorder) Close() (Recorded, error) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mu.Unlock()
	<-r.done
	for _, row := range r.sampler.Rows() {
		if err := r.writer.Add(row); err != nil {
			r.writer.Discard()
			return r.result(), err
		}
	}
	if err := r.writer.Close(); err != nil {
		return r.result(), err
	}
	if r.writer.Count() == 0 {
		r.writer.Discard() // the folder, if it is new
	}
	return r.result(), nil
}
