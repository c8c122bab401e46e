package sqlite

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Lists are read by an index from where a page begins: never from the beginning of a table.
func TestListsAreNotScanned(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	parameter := regexp.MustCompile(`@\w+`)
	const found = "SCAN found" // by DocumentCount, of what its limit has left
	checked := 0
	for _, file := range []string{"listing", "documents", "once", "history", "recorded"} {
		text, err := os.ReadFile("queries/" + file + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range strings.Split(string(text), "-- name: ")[1:] {
			name, statement, _ := strings.Cut(query, "\n")
			if !strings.Contains(statement, "SELECT") || strings.HasPrefix(name, "HistoryLast") || strings.HasPrefix(name, "RecordedRestore") { // which makes a list anew
				continue
			}
			for _, detail := range steps(t, db, parameter.ReplaceAllString(statement, "'x'")) {
				sorted := strings.Contains(detail, "TEMP B-TREE") && !strings.HasPrefix(name, "AnswerSizes ") // which reads the few answers of one principal
				if strings.HasPrefix(detail, "SCAN") && detail != found || sorted {
					t.Errorf("%s: %s", name, detail)
				}
				checked++
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d steps were looked at", checked)
	}
}

// A page of repositories takes a lookup per name: the names alone are scanned and sorted.
func TestRepositoriesAreSought(t *testing.T) {
	t.Parallel()
	sought := 0
	for _, detail := range steps(t, openTest(t), regexp.MustCompile(`\?\d`).ReplaceAllString(repositoryPage, "'x'")) {
		switch {
		case strings.HasPrefix(detail, "SEARCH m USING"):
			sought++
		case strings.Contains(detail, " m"):
			t.Error(detail)
		}
	}
	if sought != 2 {
		t.Errorf("%d searches, want 2", sought)
	}
}

// steps are how SQLite answers a query.
func steps(t *testing.T, db *DB, query string) []string {
	t.Helper()
	rows, err := db.reader.Query("EXPLAIN QUERY PLAN " + query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		all = append(all, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
