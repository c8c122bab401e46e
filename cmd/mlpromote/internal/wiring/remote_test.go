package wiring

import "testing"

// What a comment shows of a service's address has no password, and is something that a browser opens.
func TestPages(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]string{
		"https://models.example":                      "https://models.example",
		"http://127.0.0.1:5080/":                      "http://127.0.0.1:5080/",
		"https://me:secret@models.example/x?t=s#frag": "https://models.example/x",
		"":                     "",
		"models.example":       "",
		"javascript:alert(1)":  "",
		"ftp://models.example": "",
		"https://[::1":         "",
	} {
		if got := pages(service); got != want {
			t.Errorf("got %q as the address of the pages of %q, want %q", got, service, want)
		}
	}
}
