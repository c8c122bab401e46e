package catalog

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// IdentityRow is the row of a catalog's identity.
type IdentityRow struct {
	ID      string
	Origins string // separated by spaces, the latest first
	Storage string
	Epoch   int64
}

// Identity returns the identity in a row. instance identifies the database that has the row.
func (row IdentityRow) Identity(instance string) storage.CatalogIdentity {
	return storage.CatalogIdentity{
		ID: row.ID, Origins: strings.Fields(row.Origins), Instance: instance, Storage: row.Storage, Epoch: row.Epoch,
	}
}

// JoinOrigins returns the column for the origins of a catalog, the latest first.
func JoinOrigins(id string, earlier ...string) string {
	return strings.TrimSpace(strings.Join(append([]string{id}, earlier...), " "))
}

// ContentRecorded returns an error if the content of a catalog was not recorded, because its
// row had changed. It takes the results of the change. name is that of the database, for people.
func ContentRecorded(name string, rows int64, err error) error {
	if err == nil && rows == 0 {
		return registry.Errorf(registry.CodeConflict,
			"another process recorded other content for the catalog in %s meanwhile; try again", name)
	}
	return err
}
