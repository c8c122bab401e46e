package consistency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// loads has the engine loaded several times in one process, and compares what each load gives with what the engine gave before: for
// cases alone with the run that the verdict is about, and for the first batches with the run of these. A runtime that works in
// memory which an earlier load left can be right in one load and wrong in another.
func (f *findings) loads(ctx context.Context, done outcome, dir string) error {
	if _, failed := done.failed[f.set.repeat[0].Name]; failed || f.engine.Load == nil {
		return nil
	}
	batch, batched, err := f.batchToLoad(done)
	if err != nil {
		return err
	}
	shards := f.set.loads
	if batched {
		shards = append(shards[:len(shards):len(shards)], batch.shards...)
	}
	dirs, err := f.engine.Load(ctx, inputs(shards), dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(dirs) == 0 {
		err = registry.Errorf(registry.CodeInternal, "nothing was loaded")
	}
	p := validators.TrialOf(evidence.TrialLoad).Check("")
	if err != nil {
		f.broke(&p, "", validators.TrialOf(p.Trial).Code, "the engine does not run where it is loaded several times", err)
		f.checks = append(f.checks, p)
		return nil
	}
	p.Size, p.Verdict = fmt.Sprintf("loads=%d", len(dirs)), evidence.VerdictPass
	for _, s := range f.set.loads {
		p.Cases += len(s.cases)
	}
	for i, folder := range dirs {
		where := fmt.Sprintf("after load %d of %d in one process", i+1, len(dirs))
		reasons, err := f.load(ctx, &p, where, folder, done, batch)
		if err != nil {
			return err
		}
		if p.Verdict == evidence.VerdictFail {
			f.add(p, reasons)
			return nil
		}
	}
	f.add(p, nil)
	return nil
}

// batchToLoad is the check of the smallest batches, if the engine ran it, with as many of them as are run with each load.
func (f *findings) batchToLoad(done outcome) (made trial, ok bool, err error) {
	at := slices.IndexFunc(f.set.trials, func(t trial) bool { return t.batch == smallBatch })
	if at < 0 {
		return trial{}, false, nil
	}
	t := f.set.trials[at]
	left := f.set.loaded()
	made = t
	made.shards = nil
	for _, s := range t.shards {
		if done.failed[s.Name] != nil {
			return trial{}, false, nil //nolint:nilerr // the trial itself reports the failure
		}
		n := min(len(s.cases), left)
		left -= n
		if n == len(s.cases) {
			made.shards = append(made.shards, s)
			continue
		}
		if n == 0 {
			continue
		}
		few := f.set.shard(fmt.Sprintf("check-0-load-batch-%05d", s.cases[0].shard), s.cases[:n])
		few.ran = s.Name
		if err := f.set.store(few, f.set.full, tensor.Stack, smallBatch); err != nil {
			return trial{}, false, err
		}
		made.shards = append(made.shards, few)
	}
	return made, true, nil
}

// load compares one load, and keeps in p the worst of it. It returns the reasons why it fails.
func (f *findings) load(ctx context.Context, p *evidence.Check, where, folder string,
	done outcome, batch trial) ([]evidence.Reason, error) {
	alone, err := f.aloneAgain(folder)
	if err != nil {
		return nil, err
	}
	together, err := f.batchAgain(folder, done, batch)
	if errors.Is(err, tensor.ErrMismatch) {
		p.Verdict, p.Message = evidence.VerdictFail, where+", "+batch.what+": "+err.Error()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		where string
		pairs []pair
	}{{where, alone}, {where + ", " + batch.what, together}} {
		found, reasons, err := f.jitter(ctx, evidence.TrialLoad, "run again "+c.where, eachOf(c.pairs))
		if err != nil {
			return nil, err
		}
		p.Affected = max(p.Affected, min(found.Affected, p.Cases))
		if found.Verdict == evidence.VerdictPass {
			continue
		}
		if failed := found.Verdict == evidence.VerdictFail; failed || p.Verdict == evidence.VerdictPass || found.Value > p.Value {
			p.Verdict, p.Message, p.Value, p.Output = found.Verdict, found.Message, found.Value, found.Output
		}
		if p.Verdict == evidence.VerdictFail {
			return reasons, nil
		}
	}
	return nil, nil
}

// eachOf yields pairs that are at hand.
func eachOf(pairs []pair) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		for _, made := range pairs {
			if !yield(made, nil) {
				return
			}
		}
	}
}

// aloneAgain pairs the cases that a load ran with the run that the verdict is about.
func (f *findings) aloneAgain(folder string) (pairs []pair, err error) {
	for _, s := range f.set.loads {
		for row, c := range s.cases {
			made := pair{number: s.of.First + c.row}
			if made.want, err = f.set.outputs(f.engine.Outputs, s.of.File, c.row); err != nil {
				return nil, err
			}
			if made.got, err = f.set.outputs(folder, s.Name, row); err != nil {
				return nil, err
			}
			if made.inputs, err = f.set.read(c); err != nil {
				return nil, err
			}
			pairs = append(pairs, made)
		}
	}
	return pairs, nil
}

// batchAgain pairs the batches that a load ran with those that the engine ran before.
func (f *findings) batchAgain(folder string, done outcome, batch trial) (pairs []pair, err error) {
	for _, s := range batch.shards {
		loaded := outcome{dir: map[string]string{s.Name: folder}}
		whole := s
		whole.Name = cmp.Or(s.ran, s.Name)
		for at := range s.cases {
			before, err := f.inBatch(batch, whole, at, done, f.engine.Outputs)
			if errors.Is(err, tensor.ErrMismatch) {
				return nil, nil // the check of this batch says so
			}
			if err != nil {
				return nil, err
			}
			made, err := f.inBatch(batch, s, at, loaded, f.engine.Outputs)
			if err != nil {
				return nil, err
			}
			made.want = before.got
			pairs = append(pairs, made)
		}
	}
	return pairs, nil
}
