package pages

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// content reads what pages show of the content of releases.
type content struct {
	parts storage.PartStore
	open  func(ctx context.Context, d registry.Digest) (storage.Blob, int64, error)
}

func (c content) forPages() *page.Content {
	return &page.Content{Files: c.files, Inputs: c.inputs, Labels: parts.Cases{Parts: c.parts, Open: c.open}.Labels}
}

// files lists the files of an engine.
func (c content) files(ctx context.Context, repository string, engine registry.Digest) ([]artifact.File, error) {
	found, err := c.parts.Fetch(ctx, repository, engine, "")
	return found.Files, err
}

// inputs describes the inputs of a case.
func (c content) inputs(ctx context.Context, at page.CaseAt) ([]page.CaseInput, error) {
	inputs, err := parts.Cases{Parts: c.parts, Open: c.open}.Inputs(ctx, at.Sources, at.Digest, at.Case)
	if err != nil {
		return nil, err
	}
	vocabulary := c.vocabulary(ctx, at.Files)
	var all []page.CaseInput
	for _, in := range inputs {
		shown := page.CaseInput{Name: in.Name}
		if picture, ok := parts.Picture(in.Value); ok {
			shown.PNG = picture
		} else {
			shown.Text = parts.Words(in.Value, vocabulary)
		}
		if shown.PNG != nil || shown.Text != "" {
			all = append(all, shown)
		}
	}
	return all, nil
}

// maxVocabulary is how large a vocabulary may be, in bytes.
const maxVocabulary = 4 << 20

// vocabulary is the asset vocab.txt of an engine: a token in each line, numbered from 0. Nil if there is none that can be
// read.
func (c content) vocabulary(ctx context.Context, files []artifact.File) []string {
	i := slices.IndexFunc(files, func(f artifact.File) bool { return f.Path == "vocab.txt" && f.Size <= maxVocabulary })
	if i < 0 {
		return nil
	}
	blob, _, err := c.open(ctx, files[i].Digest)
	if err != nil {
		return nil
	}
	defer blob.Close()
	text, err := io.ReadAll(io.LimitReader(blob, maxVocabulary))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(bytes.ToValidUTF8(text, nil)), "\n"), "\n")
}
