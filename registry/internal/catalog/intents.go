package catalog

import (
	"context"

	"mlpromote.dev/mlpromote/registry/history"
)

// Abandon calls remove unless the head is at the release of the intent: then the promotion came
// through, and its intent ends another way. It runs in a transaction in which the head does not
// move.
func Abandon(ctx context.Context, q StateRows, i history.Intent, remove func() error) error {
	head, err := q.HeadRow(ctx, i.Environment, i.Model)
	if err != nil || head.Release == i.Release {
		return err
	}
	return remove()
}
