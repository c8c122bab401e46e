package catalog

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Writer writes the rows of an [Outcome], in the transaction that decided it.
type Writer interface {
	PartWriter
	SetHead(ctx context.Context, h history.Head) error
	// PutManifest records a manifest as [storage.RepositoryRecords] says.
	PutManifest(ctx context.Context, repository string, m storage.Manifest) error
	MoveTag(ctx context.Context, t storage.TagMove) error
	// EndIntent deletes the intent for a release. It succeeds if there is none.
	EndIntent(ctx context.Context, environment, model string, release registry.Digest) error
	AddToCounter(ctx context.Context, name string, n int64) error
	// PutDocument writes a row as [Documents] does.
	PutDocument(ctx context.Context, kind, name, body string) error
	AppendEvent(ctx context.Context, seq int64, body string) error
}

// Write writes an outcome. The event comes last, because readers of the history look for its
// effects.
func (o Outcome) Write(ctx context.Context, w Writer) error {
	if o.Head != nil {
		if err := w.SetHead(ctx, *o.Head); err != nil {
			return err
		}
	}
	if err := o.writeContent(ctx, w); err != nil {
		return err
	}
	if o.Agreed != nil {
		if err := SetConfiguration(ctx, w, *o.Agreed); err != nil {
			return err
		}
	}
	if o.EndIntent {
		if err := w.EndIntent(ctx, o.Event.Environment, o.Event.Model, o.Event.Release); err != nil {
			return err
		}
	}
	if o.Restricts {
		if err := w.AddToCounter(ctx, Restrictions, 1); err != nil {
			return err
		}
	}
	if err := o.keep(ctx, w); err != nil {
		return err
	}
	return o.append(ctx, w)
}

// writeContent writes manifests, and then the tags that name them.
func (o Outcome) writeContent(ctx context.Context, w Writer) error {
	for _, m := range o.Adds {
		if err := w.PutManifest(ctx, m.Repository, m.Manifest); err != nil {
			return err
		}
	}
	for _, t := range o.Tags {
		if err := w.MoveTag(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (o Outcome) append(ctx context.Context, w Writer) error {
	body, err := EncodeEvent(o.Event)
	if err != nil {
		return err
	}
	return w.AppendEvent(ctx, o.Event.Seq, body)
}
