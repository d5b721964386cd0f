// This program watches, lists and writes with the official JavaScript client, and prints the results. The file
// $KUBECONFIG names the server, and must contain insecure-skip-tls-verify: otherwise the client refuses http.
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = 'default';
const told = [];
let wake = () => {};
const tell = (line) => {
  told.push(line);
  wake();
};
const until = async (line) => {
  while (!told.includes(line)) await new Promise((resolve) => (wake = resolve));
  console.log(line);
};

const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'app=js' });
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, 'app=js');
for (const verb of ['add', 'update', 'delete']) informer.on(verb, (o) => tell(`${verb} ${o.metadata.name}`));
informer.on('error', (e) => tell(`error ${e}`));
await informer.start();

const metadata = { name: 'js', labels: { app: 'js' } };
await core.createNamespacedConfigMap({ namespace, body: { metadata, data: { x: '1' } } });
await until('add js');
const body = [{ op: 'replace', path: '/data/x', value: '2' }];
await core.patchNamespacedConfigMap({ name: 'js', namespace, body });
await until('update js');
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const applied = await objects.patch(
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'js', namespace, labels: { app: 'other' } } },
  undefined, undefined, 'js', true, 'application/apply-patch+yaml');
console.log(`applied ${applied.metadata.labels.app}, ${applied.data.x}`);
await until('delete js'); // the object has left the selection
await core.deleteNamespacedConfigMap({ name: 'js', namespace });

const lease = { metadata: { name: 'js' }, spec: { holderIdentity: 'js', leaseDurationSeconds: 15 } };
const leases = config.makeApiClient(k8s.CoordinationV1Api);
console.log(`lease of ${(await leases.createNamespacedLease({ namespace, body: lease })).spec.holderIdentity}`);
const status = async (call) => {
  try {
    await call();
    return 200;
  } catch (e) {
    return e.code;
  }
};
console.log(`read what is not there: ${await status(() => core.readNamespacedPod({ name: 'none', namespace }))}`);
const gone = await new Promise((resolve) => {
  const at = { resourceVersion: '1', timeoutSeconds: 5 };
  new k8s.Watch(config).watch(`/api/v1/namespaces/${namespace}/events`, at, () => {}, resolve).catch(resolve);
});
console.log(`a watch from version 1: ${gone?.statusCode ?? gone?.code ?? gone?.message ?? gone}`);
await informer.stop();
