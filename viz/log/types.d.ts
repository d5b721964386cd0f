// Code generated from the program's structs and tables: make generate. DO NOT EDIT.

declare namespace fold {
  type Cell = { pos: number; t: number; type: string; key: string; rv: string };
  type Last = { seq: number; t: number; point: probe.PointName | ""; subject: string; type: string; key: string; rv:
    string; texts: { [name in probe.TextName]?: string } };
  type Point = { name: probe.PointName; station: probe.Station; op: string; opens?: string; queue?: string; args:
    string[]; texts?: string[]; lane?: string; waits?: string; on?: string; holds?: string[]; until?: string[];
    locked?: boolean; anomaly?: boolean; fact: string; says: string; plain?: string; cases?: string[][]; owner?:
    string; ends?: string[] };
  type Queue = { len: number; cap: number; sent: number; received: number; high: number; tokens: fold.Token[] };
  type Resource = { stations: { [name in probe.Station]?: fold.Station }; subjects: { [name: string]: fold.Subject };
    points: { [name in probe.PointName]?: number }; ring: fold.Ring; shelves: { [name: string]: fold.Shelf }; waits: {
    [name: string]: fold.Wait[] } };
  type Ring = { start: number; end: number; capacity: number; oldest: string; newest: string; cells: fold.Cell[] };
  type Row = { type: string; key: string; rv: string; seq: number };
  type Shelf = { n: number; rows: fold.Row[] };
  type State = { seq: number; t: number; lost: number; resources: { [name: string]: fold.Resource } };
  type Station = { count: number; rv: string; vars: { [name in probe.ArgName]?: number }; last: fold.Last };
  type Subject = { kind: string; opened: number; began: string; rv: string; vars: { [name in probe.ArgName]?: number };
    texts: { [name in probe.PointName]?: { [name in probe.TextName]?: string } }; counts: { [name in probe.PointName]?:
    number }; queues: { [name: string]: fold.Queue }; last: fold.Last; fill?: number };
  type Token = { type: string; key: string; rv: string };
  type Wait = { seq: number; t: number; point: probe.PointName | ""; kind: string; subject: string; lane: string; on:
    string; type: string; key: string; rv: string };
}

declare namespace hold {
  type Clock = { now: string; speed: number; paused: boolean; next: worldclock.Due[] };
  type Status = { held: boolean; gates: probe.Query[]; opened: probe.Query[]; waiting: probe.Waiting[]; since?: string;
    clock: hold.Clock; stations: probe.Station[]; attending: number; unattended: string; letGo?: string };
}

declare namespace probe {
  type ArgName = "blocked" | "budget" | "bytes" | "cap" | "capacity" | "command" | "end" | "generation" | "input" |
    "kB" | "len" | "listeners" | "ms" | "n" | "oldest" | "percent" | "queued" | "quiet" | "refuses" | "request" |
    "result" | "start" | "status" | "watchers" | "wrote";
  type PointName = "Unknown" | "RequestReceived" | "RequestAnswered" | "KnobTurned" | "CommandEnded" |
    "PredicateChosen" | "TxnCommitted" | "TxnConflict" | "WriteRefused" | "RangeRead" | "EtcdLookedAt" | "EtcdFailed" |
    "ProgramStopped" | "WatchChanOpened" | "WatchChanClosed" | "WatchChanError" | "Etcd3IncomingBlocked" |
    "Etcd3IncomingSent" | "Etcd3IncomingReceived" | "Etcd3ResultBlocked" | "Etcd3ResultSent" | "RingAppend" |
    "RingResize" | "RVAdvanced" | "StoreUpdate" | "StoreHolds" | "CacheReplaced" | "FreshnessWait" | "FreshnessReady" |
    "FreshnessGivenUp" | "ListServed" | "CacherReady" | "CacherNotReady" | "CacherStopped" | "IncomingBlocked" |
    "IncomingSent" | "IncomingReceived" | "DispatchStarted" | "DispatchBlocked" | "DispatchFinished" | "WatcherAdded" |
    "WatcherInterval" | "WatcherForced" | "WatcherLookedAt" | "CrowdLookedAt" | "WatcherRemoved" | "InputBlocked" |
    "InputSent" | "InputReceived" | "WatcherFiltered" | "ResultBlocked" | "ResultSent" | "ResultReceived" |
    "WireOpened" | "FrameWritten" | "WireFlushed" | "WireClosed" | "FrameDecoded" | "StreamBlocked" | "StreamEnded" |
    "ReflectorListed" | "ReflectorWatching" | "ReflectorReceived" | "ReflectorStoreFailed" | "ReflectorSynced" |
    "ReflectorWatchEnded" | "ReflectorBackoff" | "FIFOAdded" | "FIFOWaited" | "FIFOPopped" | "FIFOClosed" |
    "FIFOProcessed" | "IndexerUpdated" | "IndexerHolds" | "Distributed" | "ListenerAdded" | "ListenerRemoved" |
    "AddBlocked" | "AddReceived" | "PendingPushed" | "PendingPopped" | "HandlerCalled" | "HandlerReturned" |
    "HandlerSlow" | "WorkAdded" | "WorkWaited" | "WorkWoken" | "WorkGot" | "WorkDone" | "WorkRetry" | "Reconciled";
  type Query = { points?: probe.PointName[]; station?: probe.Station; resource?: string; subject?: string; type?:
    string; key?: string; rv?: string; fields?: { [name: string]: string } };
  type QueueName = "etcd3-incoming" | "etcd3-result" | "incoming" | "input" | "result" | "fifo" | "pending" |
    "workqueue";
  type Record = { seq: number; t: number; point: probe.PointName; resource?: string; subject?: string; type?: string;
    key?: string; rv?: string; args?: number[]; texts?: { [name in probe.TextName]?: string } };
  type Station = "http" | "etcd" | "etcd3" | "ring" | "store" | "incoming" | "dispatch" | "watcher" | "wire" |
    "reflector" | "fifo" | "indexer" | "processor" | "listener" | "handler" | "workqueue";
  type TextName = "agent" | "did" | "error" | "fields" | "fill" | "from" | "health" | "informer" | "labels" | "method"
    | "name" | "path" | "pause" | "prefix" | "query" | "reason" | "scope" | "target" | "took" | "value" | "version" |
    "what" | "why";
  type Waiting = { goroutine: string; function: string; line: string; station: probe.Station; seq: number; t: number;
    point: probe.PointName; resource?: string; subject?: string; type?: string; key?: string; rv?: string; args?:
    number[]; texts?: { [name in probe.TextName]?: string }; says: string; seconds: number };
}

declare namespace scenario {
  type Beat = { title?: string; say: string; look: probe.Station[]; question?: scenario.Question; seen: string; at:
    string; text: string; as?: string };
  type Member = { name: string; is: { [name: string]: string }; nth?: number; pin?: boolean; other?: string };
  type Question = { ask: string; answers: string[]; right: number; why?: string };
  type Range = { from: number; to: number; resource?: string; behind: number; subject?: string; seen: string };
  type Seen = { id: string; from: number; to: number; saw: string; beats: scenario.Range[]; untold?: string; symptom?:
    string };
  type Story = { id: string; title: string; symptom: string; search: string; chapter: string; thread: string; beats:
    scenario.Beat[]; was?: string[]; group: string; means: string; pod?: string; unfolds?: boolean; cast?:
    scenario.Member[]; versions?: string[]; alone?: string; saw: string };
}

declare namespace stage {
  type Box = { X: number; Y: number; W: number; H: number; Title: string };
  type Geometry = { "anchors": { [name in "decode" | "dispatch" | "etcd" | "etcd3-out" | "http" | "incoming-out" |
    "indexer" | "processor" | "reflector" | "ring" | "server-reflector" | "store" | "visitor" | "wire" | "workqueue"]:
    [number, number] }; "askX": number; "boxes": { [name in "dispatch" | "etcd" | "etcd3" | "fifo" | "handler" | "http"
    | "incoming" | "indexer" | "listener" | "processor" | "reflector" | "ring" | "server-reflector" | "store" |
    "watcher" | "wire" | "workqueue"]: stage.Box }; "clientAxis": number; "crowd": stage.Box; "ghost": stage.Box;
    "guest": stage.Box; "height": number; "lane": { [name in "height" | "room"]: number }; "laneAxis": number;
    "listen": { [name in "height" | "room"]: number }; "maxSlots": number; "panes": stage.Box; "pipes": { [name in
    "add" | "etcd3-incoming" | "etcd3-result" | "fifo" | "incoming" | "input" | "next" | "pending" | "result" |
    "workqueue"]: stage.Pipe }; "ring": { [name in "in" | "out" | "x" | "y"]: number }; "serverAxis": number; "stops":
    { [name in "called" | "enters" | "guest" | "handed" | "keys" | "leaves" | "process" | "taken" | "worked"]: number
    }; "tall": { "boxes": { [name in "dispatch" | "etcd" | "etcd3" | "fifo" | "handler" | "http" | "incoming" |
    "indexer" | "listener" | "processor" | "reflector" | "ring" | "server-reflector" | "store" | "watcher" | "wire" |
    "workqueue"]: stage.Box }; "height": number; "turns": { [name in "ask-top" | "ask-up" | "etcd-door" | "hub-left" |
    "hub-low" | "indexer-in" | "loop-high" | "loop-in" | "loop-low" | "loop-out" | "processor-in" | "processor-out" |
    "ring-in" | "ring-near" | "store-out"]: [number, number] }; "width": number }; "turns": { [name in "ask-down" |
    "ask-end" | "ask-top" | "ask-up" | "crowd-in" | "etcd-door" | "http-door" | "http-in" | "http-top" | "hub" |
    "hub-in" | "hub-left" | "hub-low" | "indexer-in" | "loop-high" | "loop-in" | "loop-low" | "loop-out" |
    "processor-in" | "processor-out" | "ring-in" | "ring-near" | "store-out" | "tray" | "tray-words" | "wire-above" |
    "wire-below" | "wire-texts"]: [number, number] }; "width": number; "wireX": number };
  type Pipe = { X: number; Y: number; W: number; H: number; NumX: number; NumY: number; NumAnchor: string };
}

declare namespace stories {
  type Pace = { lead: number; play: number; rest: number };
}

declare namespace timeline {
  type Flag = { seq: number; t: number; point: probe.PointName | ""; resource?: string };
  type Limits = { bucketWidth: number; buckets: number; flags: number; writes: string[]; viewers: string; demo: string
    };
  type Span = { log: string; oldest: number; last: number; t: number; width: number; buckets: number[][]; flags:
    timeline.Flag[] };
}

declare namespace worldclock {
  type Due = { in: number };
}
