package catalog

import "mlpromote.dev/mlpromote/registry"

// KeptAnswer returns what a claim gets if its key has an unexpired row: the answer, or why there
// is none yet. request is that of the row. A row without a status is a claim.
func KeptAnswer(c registry.KeyClaim, request string, answer registry.KeptAnswer) (*registry.KeptAnswer, error) {
	switch {
	case request != string(c.Request):
		return nil, registry.Errorf(registry.CodeInvalid,
			"idempotency key %q was used for another request: use a new key for each request", c.Key)
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
