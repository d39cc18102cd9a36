package consent_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Follows the README word by word in an empty folder.

var block = regexp.MustCompile("(?ms)^```(sh|go)\n(.*?)^```$")

type follower struct {
	folder string
	env    []string
}

func newFollower(t *testing.T, of servers) follower {
	t.Helper()
	env := os.Environ()
	for name, value := range map[string]string{
		"GPD_CONSENT_URL": of.URL, "GPD_CONSENT_KEY": of.Keys["secret"], "LEDGER_VKEY": of.VKey, "GOFLAGS": "", "GOWORK": "off",
	} {
		env = append(env, name+"="+value)
	}
	return follower{t.TempDir(), env}
}

func (f follower) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir, command.Env = f.folder, f.env
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
	return string(said)
}

func (f follower) write(t *testing.T, name, code string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
}

const wrapper = `package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

%s
func sign(body []byte) (http.Header, error) {
%s	return header, err
}

func fake(ctx context.Context) error {
%s
	allowed, err := client.IsAllowed(ctx, consent.Check{PrincipalID: "u-1", Purpose: "newsletter"})
	fmt.Println("fake:", allowed)
	return err
}

func grant(ctx context.Context, client *consent.Client) {
%s}

func rest(ctx context.Context, client *consent.Client) error {
%s
%s
	{
%s	}
	return fake(ctx)
}

func main() {
	ctx := context.Background()
	client, err := consent.FromEnv(consent.Options{})
	if err == nil {
		grant(ctx, client)
		err = rest(ctx, client)
	}
	http.HandleFunc("/", receive)
	if _, signErr := sign(nil); signErr == nil {
		log.Fatal("it signed without a secret")
	}
	if err != nil {
		log.Fatal(err)
	}
}
`

func TestReadmeWordForWord(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, found := range block.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, found[2])
	}
	if len(blocks) != 11 || !strings.Contains(blocks[2], "IsAllowed") {
		t.Fatalf("the README has %d blocks", len(blocks))
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// blocks[1] has gpd commands, which test/sdks.test.ts of the repository runs; examples/page has blocks[6].
	install, ask, why, failures, writes, proofs, webhooks, signs, fakes := blocks[0], blocks[2], blocks[3], blocks[4],
		blocks[5], blocks[7], blocks[8], blocks[9], blocks[10]
	f := newFollower(t, startServers(t))
	f.run(t, "sh", "-ec", strings.Replace(install, "/path/to/gpd/sdk/go", here, 1))
	f.write(t, "main.go", ask)
	if said := f.run(t, "go", "run", "."); said != "do not\n" {
		t.Errorf("the first program said %s", said)
	}
	f.write(t, "main.go", fmt.Sprintf(wrapper, webhooks, signs, fakes, failures, why, proofs, writes))
	said := f.run(t, "go", "run", ".")
	expected := regexp.MustCompile(`^true granted\nentry \d+\nconsent\.granted \S+Z\ngranted with entry \d+\nfake: false\n$`)
	if !expected.MatchString(said) {
		t.Errorf("the rest said %s", said)
	}
	f.write(t, "main.go", ask)
	if said := f.run(t, "go", "run", "."); said != "do not\n" {
		t.Errorf("after the withdrawal the first program said %s", said)
	}
}

func TestExample(t *testing.T) {
	f := newFollower(t, startServers(t))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	f.folder = here
	said := f.run(t, "go", "run", "./examples/check", "u-"+strconv.FormatInt(time.Now().UnixNano(), 10), "newsletter")
	if said != "before: false never-asked\ngranted: true\nwithdrawn: false\n" {
		t.Error(said)
	}
}
