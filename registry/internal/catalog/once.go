package catalog

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// KeptAnswer returns what a claim gets if its key has an unexpired row: the answer, or why there
// is none yet. request is that of the row. A row without a status is a claim.
func KeptAnswer(c storage.KeyClaim, request string, answer storage.KeptAnswer) (*storage.KeptAnswer, error) {
	switch {
	case request != string(c.Request):
		return nil, registry.Errorf(registry.CodeInvalid,
			"the idempotency key was used for another request: use a new key for each request")
	case answer.Status == 0:
		return nil, registry.Errorf(registry.CodeConflict, "the same request is still running: wait and try again")
	}
	return &answer, nil
}

// Claimed returns an error if a change found no claim. It takes the results of the change.
func Claimed(rows int64, err error) error {
	if err == nil && rows == 0 {
		return registry.Errorf(registry.CodeConflict, "the idempotency key expired, or another request has it")
	}
	return err
}

// AnswerSize is the key of a kept answer, with the size of its body.
type AnswerSize struct {
	Key   string
	Bytes int64
}

// Surplus returns the keys of the answers of a principal, which are newest first, that are not kept.
func Surplus(newestFirst []AnswerSize) []string {
	var keys []string
	bytes := int64(0)
	for n, a := range newestFirst {
		if bytes += a.Bytes; n >= storage.MaxKeptAnswers || bytes > storage.MaxKeptAnswerBytes {
			keys = append(keys, a.Key)
		}
	}
	return keys
}
