package access

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// An operation whose row has no permission is refused to everybody.
func TestForgottenPermissionRefuses(t *testing.T) {
	t.Parallel()
	administrator := Anonymous()
	row := *api.SetHold
	around := func(ctx context.Context, c api.Call) error { return admit(ctx, administrator, c) }
	if _, err := api.Ask(t.Context(), around, &row, api.Hold{Environment: "prod", Model: "digits"}); err != nil {
		t.Errorf("with a permission: error %v", err)
	}
	row.Permission = ""
	if _, err := api.Ask(t.Context(), around, &row, api.Hold{Environment: "prod", Model: "digits"}); registry.CodeOf(err) != registry.CodeForbidden {
		t.Errorf("without a permission: error %v, want CodeForbidden", err)
	}
}
