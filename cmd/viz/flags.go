package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	watchcache "listwatch/chapters/04-watchcache"
	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/etcdnode"
)

// options is the parsed command line.
type options struct {
	machine.Options

	listen        string
	dataDir       string
	etcdEndpoints string
	etcdTLS       etcdnode.TLSFiles
	record        string
	replay        string
	flight        string // a folder, or flightOff
	kubeconfig    string
	open          bool
	version       bool
	export        string     // the folder for the exported pages
	server        []*url.URL // the addresses of an API server that is not ours; nil: both halves are ours
	serverWrites  bool

	end *ending // the tasks to run before the program ends; no flag sets it
}

// flightOff is the value of -flight that keeps the program from saving recordings by itself.
const flightOff = "off"

// The bounds of the log's size, in records of about 150 bytes. The log must hold what one frame of a page shows.
const (
	minLogSize = 1 << 12
	maxLogSize = 1 << 22
)

// parseOptions reads the command line. After printing the usage for -help it returns flag.ErrHelp; for an invalid
// command line it returns an error of one line.
func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{Options: machine.Options{Switches: pipeline.Today()}}
	flags := flag.NewFlagSet("viz", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // runUntil prints errors, once
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address` of the page, the book and the Kubernetes API; "+
		"port 0 picks a free one")
	flags.StringVar(&o.dataDir, "data-dir", "", "`folder` of etcd's data; default: a temporary one, removed at exit")
	flags.StringVar(&o.etcdEndpoints, "etcd-endpoints", "", "use this etcd, `A,B,C`, instead of the embedded one")
	flags.StringVar(&o.etcdTLS.CACert, "etcd-cacert", "", "`file` with the authority that has signed the "+
		"certificates of -etcd-endpoints")
	flags.StringVar(&o.etcdTLS.Cert, "etcd-cert", "", "`file` with our certificate for -etcd-endpoints")
	flags.StringVar(&o.etcdTLS.Key, "etcd-key", "", "`file` with its key")
	flags.BoolVar(&o.Demo, "demo", true, "gentle built-in traffic, so that the first page moves")
	o.Controllers = pipeline.Controllers
	flags.Var((*controllers)(&o.Controllers), "controllers", "run our controllers: `true|false|NAME,...` of "+
		strings.Join(pipeline.Controllers, ", ")+"; what none of them does waits, such as kubectl delete namespace")
	for _, each := range pipeline.Switches {
		set := func(value string) { o.Switches[each.Name] = value }
		choice(flags, each.Name, each.Use, set, each.Today, each.Before)
	}
	choice(flags, "storage-media-type", "how objects are stored in etcd", func(value string) { o.MediaType = value },
		"application/vnd.kubernetes.protobuf", "application/json")
	flags.IntVar(&o.RingCapacity, "ring-capacity", 0,
		fmt.Sprintf("fix the history ring at `N` events; 0: dynamic, up to %d", watchcache.MaxRingCapacity))
	flags.StringVar(&o.record, "record", "", "write the log to `file`, new or a recording")
	flags.StringVar(&o.replay, "replay", "", "show the log in `file` and run nothing")
	flags.StringVar(&o.flight, "flight", os.TempDir(), "when a watcher is evicted, a client gets 410 or a promise is "+
		"broken, save the last half minute in `folder`; off: save nothing")
	flags.IntVar(&o.LogSize, "log-size", probe.DefaultLogSize,
		"keep the newest `N` records: how far back the page can go")
	choice(flags, "clock", "manual: time moves only from the page", func(value string) { o.Clock = value }, "real",
		machine.ClockManual)
	server := flags.String("server", "", "watch the API server at `URL`, such as kubectl proxy's, instead of running "+
		"one, and forward our port to it; A,B: if one does not answer, the other is asked")
	flags.BoolVar(&o.serverWrites, "server-writes", false, "also forward requests that write to -server")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "write a kubeconfig for this server to `file`, new or written so")
	flags.BoolVar(&o.open, "open", false, "open the browser")
	flags.BoolVar(&o.version, "version", false, "say which version this is, and run nothing")
	flags.StringVar(&o.export, "export", "", "run nothing; write book, stories and stage into `folder`, new or an "+
		"export, as pages that need no program")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			fmt.Fprintln(stderr, "usage: viz [flags]")
			flags.PrintDefaults()
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, cmp.Or(checkExclusive(flags), o.checkServer(*server), o.check())
}

// exclusive lists the flags that make other flags useless, with the reasons.
var exclusive = []struct{ flag, others, why string }{
	{"server", "data-dir etcd-endpoints etcd-cacert etcd-cert etcd-key demo controllers etcd-watcher " +
		"dispatch storage-media-type ring-capacity replay export", "the server half is not ours"},
	{"replay", "record export data-dir etcd-endpoints", "a replay runs nothing"},
	{"export", "record data-dir etcd-endpoints", "an export runs nothing"},
	{"etcd-endpoints", "data-dir", "etcd is either embedded or elsewhere"},
}

// checkExclusive refuses a flag that another flag makes useless.
func checkExclusive(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(each *flag.Flag) {
		given[each.Name] = each.Value.String() != "false"
	})
	for _, each := range exclusive {
		for other := range strings.FieldsSeq(each.others) {
			if given[each.flag] && given[other] {
				return fmt.Errorf("-%s and -%s exclude each other: %s", each.flag, other, each.why)
			}
		}
	}
	return nil
}

// checkServer parses -server. It refuses -server-writes without -server.
func (o *options) checkServer(servers string) error {
	if servers == "" && o.serverWrites {
		return errors.New("-server-writes is for -server")
	}
	if servers == "" {
		return nil
	}
	for each := range strings.SplitSeq(servers, ",") {
		server, err := url.Parse(each)
		if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" ||
			server.RawQuery != "" || server.User != nil {
			return errors.New("-server: want http://HOST:PORT, such as the http://127.0.0.1:8001 of kubectl proxy")
		}
		o.server = append(o.server, server)
	}
	return nil
}

// check refuses invalid values and combinations that the flags' types accept.
func (o *options) check() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("-listen %q: %w", o.listen, err)
	}
	if o.RingCapacity < 0 || o.RingCapacity > watchcache.MaxRingCapacity {
		return fmt.Errorf("-ring-capacity %d: want 0 to %d", o.RingCapacity, watchcache.MaxRingCapacity)
	}
	if o.LogSize < minLogSize || o.LogSize > maxLogSize {
		return fmt.Errorf("-log-size %d: want %d to %d", o.LogSize, minLogSize, maxLogSize)
	}
	if o.etcdTLS != (etcdnode.TLSFiles{}) && o.etcdEndpoints == "" {
		return errors.New("-etcd-cacert, -etcd-cert and -etcd-key are for -etcd-endpoints")
	}
	if (o.etcdTLS.Cert == "") != (o.etcdTLS.Key == "") {
		return errors.New("-etcd-cert and -etcd-key belong together")
	}
	if folder, err := os.Stat(o.flight); o.flight != flightOff && (err != nil || !folder.IsDir()) {
		return fmt.Errorf("-flight %q: no such folder", o.flight)
	}
	return nil
}

// choice declares a flag that takes one of values. It calls set at once with the default, the first value.
func choice(flags *flag.FlagSet, name, usage string, set func(string), values ...string) {
	set(values[0])
	usage = fmt.Sprintf("%s: `%s` (default %s)", usage, strings.Join(values, "|"), values[0])
	flags.Func(name, usage, func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("want %s", strings.Join(values, " or "))
		}
		set(value)
		return nil
	})
}

// controllers is the flag that names the controllers to run.
type controllers []string

// IsBoolFlag lets -controllers without a value mean all of them.
func (*controllers) IsBoolFlag() bool { return true }

func (c *controllers) String() string {
	if len(*c) == 0 {
		return "false"
	}
	return strings.Join(*c, ",")
}

func (c *controllers) Set(value string) error {
	if all, err := strconv.ParseBool(value); err == nil {
		*c = nil
		if all {
			*c = pipeline.Controllers
		}
		return nil
	}
	names := strings.Split(value, ",")
	for _, name := range names {
		if !slices.Contains(pipeline.Controllers, name) {
			return fmt.Errorf("no controller %q; there are %s", name, strings.Join(pipeline.Controllers, ", "))
		}
	}
	*c = names
	return nil
}
