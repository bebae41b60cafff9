//! A dashboard: rows of panels, and the variables that they use.

use super::panel::{COLUMNS, Panel, datasource};
use serde_json::{Value, json};

/// A choice that the reader makes.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The variable and label.
    pub label: &'static str,
    /// A metric that has the label for all its values.
    pub of: &'static str,
    /// Whether several, and all, can be chosen.
    pub many: bool,
}

/// One dashboard.
#[derive(Debug)]
pub struct Board {
    /// The fixed uid, and the name of its file.
    pub uid: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub choices: Vec<Choice>,
    /// Titles of rows, and their panels.
    pub rows: Vec<(&'static str, Vec<Panel>)>,
}

impl Board {
    /// The panels, in order.
    pub fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|(_, panels)| panels)
    }

    /// The dashboard as Grafana's classic JSON, ended by a line feed.
    pub fn text(&self) -> String {
        // Values made of texts and numbers always are JSON.
        serde_json::to_string_pretty(&self.json()).unwrap_or_default() + "\n"
    }

    fn json(&self) -> Value {
        let (mut panels, mut id, mut y) = (Vec::new(), 0, 0);
        let mut next_id = || {
            id += 1;
            id
        };
        for (title, row) in &self.rows {
            panels.push(json!({
                "id": next_id(), "type": "row", "title": title, "collapsed": false, "panels": [],
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
            }));
            y += 1;
            let (mut x, mut height) = (0, 0);
            for panel in row {
                if x + panel.size.0 > COLUMNS {
                    (x, y, height) = (0, y + height, 0);
                }
                panels.push(panel.json(next_id(), (x, y)));
                x += panel.size.0;
                height = height.max(panel.size.1);
            }
            y += height;
        }
        json!({
            "id": null,
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["delivery-canary"],
            "schemaVersion": 39,
            "version": 1,
            "editable": false,
            "graphTooltip": 1,
            "timezone": "browser",
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timepicker": {},
            "fiscalYearStartMonth": 0,
            "liveNow": false,
            "weekStart": "",
            "links": [{
                "type": "dashboards", "title": "delivery-canary", "tags": ["delivery-canary"], "asDropdown": true, "includeVars": true,
                "keepTime": true, "targetBlank": false, "icon": "external link", "tooltip": "", "url": "",
            }],
            "annotations": {"list": []},
            "templating": {"list": self.variables()},
            "panels": panels,
        })
    }

    fn variables(&self) -> Vec<Value> {
        let source = json!({
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "", "hide": 0,
            "includeAll": false, "multi": false, "refresh": 1, "skipUrlSync": false, "current": {}, "options": [],
        });
        let choice = |choice: &Choice| {
            let query = format!("label_values({}, {})", choice.of, choice.label);
            json!({
                "name": choice.label, "label": choice.label, "type": "query", "datasource": datasource(),
                "query": {"query": query, "refId": "choice"}, "regex": "", "hide": 0, "refresh": 2, "sort": 1,
                "includeAll": choice.many, "multi": choice.many, "skipUrlSync": false, "options": [],
                "current": if choice.many { json!({"text": ["All"], "value": ["$__all"]}) } else { json!({}) },
            })
        };
        std::iter::once(source).chain(self.choices.iter().map(choice)).collect()
    }
}
