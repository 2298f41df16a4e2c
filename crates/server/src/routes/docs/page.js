// Shows the OpenAPI document as a page.
const element = (name, text, parent) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
const resolve = (api, schema, depth = 0) => {
  if (!schema || depth > 6) return {};
  if (schema.$ref) {
    const target = schema.$ref.split('/').slice(1).reduce((at, key) => at?.[key], api);
    return resolve(api, target, depth + 1);
  }
  return schema;
};
const sketch = (api, schema, depth = 0) => {
  const found = resolve(api, schema);
  if (depth > 6) return '…';
  if (found.example !== undefined) return found.example;
  const variants = found.oneOf || found.anyOf;
  if (variants) return sketch(api, variants.find(each => each.type !== 'null') || variants[0], depth + 1);
  const type = Array.isArray(found.type) ? found.type.find(each => each !== 'null') : found.type;
  if (type === 'array') return [sketch(api, found.items, depth + 1)];
  if (found.enum) return found.enum.join(' | ');
  if (type === 'object' || found.properties) {
    const entries = Object.entries(found.properties || {}).map(([name, value]) => [name, sketch(api, value, depth + 1)]);
    if (found.additionalProperties) entries.push(['…', sketch(api, found.additionalProperties, depth + 1)]);
    return Object.fromEntries(entries);
  }
  return type || {};
};
const json = (api, content) => Object.values(content || {})[0]?.schema
  && JSON.stringify(sketch(api, Object.values(content)[0].schema), null, 2);
fetch('/openapi.json').then(answer => answer.json()).then(api => {
  const main = document.getElementById('operations');
  main.textContent = '';
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const details = element('details', '', main);
      const summary = element('summary', '', details);
      element('span', method.toUpperCase(), summary).className = 'method';
      element('code', path, summary);
      summary.append(' — ' + (operation.summary || ''));
      if (operation.description) element('p', operation.description, details);
      const security = (operation.security || []).flatMap(each => Object.keys(each));
      if (security.length) element('p', 'Credentials: ' + security.join(' or '), details);
      if (operation.parameters?.length) {
        const table = element('table', '', details);
        for (const parameter of operation.parameters) {
          const row = element('tr', '', table);
          element('code', parameter.name, element('td', '', row));
          element('td', parameter.in + (parameter.required ? ', required' : ''), row);
          element('td', parameter.description || '', row);
        }
      }
      const body = json(api, operation.requestBody?.content);
      if (body) { element('h4', 'Body', details); element('pre', body, details); }
      for (const [status, response] of Object.entries(operation.responses || {})) {
        element('h4', status + ' ' + (response.description || ''), details);
        const shown = json(api, response.content);
        if (shown && status < 300) element('pre', shown, details);
      }
    }
  }
}).catch(error => { document.getElementById('operations').textContent = 'The document could not be loaded: ' + error; });
