//! One panel: what it asks, in which unit, and how it is drawn.

use serde_json::{Value, json};

/// Columns of Grafana's grid.
pub const COLUMNS: u32 = 24;

/// How a panel is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The newest value of each series, large.
    Stat,
    /// A table of the newest values, a row for each series.
    Table,
    /// Lines over time.
    TimeSeries,
    /// Coloured stretches over time, a line for each series.
    StateTimeline,
    /// Counts by bucket over time.
    Heatmap,
    /// Bars of the newest values.
    BarGauge,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Stat => "stat",
            Self::Table => "table",
            Self::TimeSeries => "timeseries",
            Self::StateTimeline => "state-timeline",
            Self::Heatmap => "heatmap",
            Self::BarGauge => "bargauge",
        }
    }

    /// Whether it shows the newest values alone.
    const fn is_instant(self) -> bool {
        matches!(self, Self::Stat | Self::Table | Self::BarGauge)
    }
}

/// Grafana's names of the units that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Seconds, shown in what is readable.
    Seconds,
    /// A share of one.
    Share,
    /// Seconds since 1970, shown as a time; queries give milliseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A state, whose words are in the panel's mappings.
    State,
}

impl Unit {
    const fn word(self) -> &'static str {
        match self {
            Self::Count => "short",
            Self::Seconds => "s",
            Self::Share => "percentunit",
            Self::Time => "dateTimeAsIso",
            Self::Bytes => "bytes",
            Self::State => "none",
        }
    }
}

/// A value, and the word and colour it is shown as.
#[derive(Clone, Copy, Debug)]
pub struct State(pub u32, pub &'static str, pub &'static str);

/// Colours that stay apart for those who don't see red and green, and carry a word each.
pub mod colour {
    /// All is well.
    pub const WELL: &str = "blue";
    /// There is a question.
    pub const DOUBT: &str = "yellow";
    /// A person is needed.
    pub const BAD: &str = "dark-red";
    /// Nobody can say.
    pub const BLIND: &str = "purple";
    /// Neither.
    pub const PLAIN: &str = "text";
}

/// One query, and what its series are called.
#[derive(Clone, Debug)]
pub struct Query {
    /// PromQL.
    pub expr: String,
    /// The legend, with labels in double braces.
    pub legend: &'static str,
}

/// One panel.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: &'static str,
    /// What it says, and what it doesn't.
    pub description: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    pub queries: Vec<Query>,
    /// Columns and rows of the grid.
    pub size: (u32, u32),
    /// Words for values.
    pub states: Vec<State>,
    /// From which values on which colour is shown; the first is for all below.
    pub thresholds: Vec<(Option<f64>, &'static str)>,
}

impl Panel {
    /// A panel of this kind, without queries yet.
    pub fn new(kind: Kind, title: &'static str, description: &'static str) -> Self {
        Self {
            title,
            description,
            kind,
            unit: Unit::Count,
            queries: Vec::new(),
            size: (12, 8),
            states: Vec::new(),
            thresholds: vec![(None, colour::PLAIN)],
        }
    }

    /// Adds a query.
    pub fn query(mut self, expr: impl Into<String>, legend: &'static str) -> Self {
        self.queries.push(Query { expr: expr.into(), legend });
        self
    }

    /// Sets the unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets the size.
    pub const fn size(mut self, columns: u32, rows: u32) -> Self {
        self.size = (columns, rows);
        self
    }

    /// Shows values as words.
    pub fn states(mut self, states: &[State]) -> Self {
        self.states = states.to_vec();
        self.unit = Unit::State;
        self
    }

    /// Colours values, from the first to those at or above each bound.
    pub fn thresholds(mut self, first: &'static str, above: &[(f64, &'static str)]) -> Self {
        self.thresholds = vec![(None, first)];
        self.thresholds.extend(above.iter().map(|(from, colour)| (Some(*from), *colour)));
        self
    }

    /// The panel as Grafana reads it, at its place.
    pub fn json(&self, id: u32, (x, y): (u32, u32)) -> Value {
        let targets: Vec<Value> =
            ('A'..='Z').zip(&self.queries).map(|(letter, query)| self.target(letter, query)).collect();
        let mut panel = json!({
            "id": id,
            "type": self.kind.word(),
            "title": self.title,
            "description": self.description,
            "datasource": datasource(),
            "gridPos": {"x": x, "y": y, "w": self.size.0, "h": self.size.1},
            "fieldConfig": {"defaults": self.defaults(), "overrides": []},
            "options": self.options(),
            "targets": targets,
        });
        if self.kind == Kind::Table {
            let gone = json!({"Time": true, "__name__": true});
            panel["transformations"] = json!([
                {"id": "merge", "options": {}},
                {"id": "organize", "options": {"excludeByName": gone, "indexByName": {}, "renameByName": {}}},
            ]);
        }
        panel
    }

    fn target(&self, letter: char, query: &Query) -> Value {
        let is_instant = self.kind.is_instant();
        let format = match self.kind {
            Kind::Table => "table",
            Kind::Heatmap => "heatmap",
            _ => "time_series",
        };
        json!({
            "refId": letter.to_string(),
            "datasource": datasource(),
            "editorMode": "code",
            "expr": query.expr,
            "legendFormat": query.legend,
            "format": format,
            "instant": is_instant,
            "range": !is_instant,
        })
    }

    fn defaults(&self) -> Value {
        let steps: Vec<Value> =
            self.thresholds.iter().map(|(from, colour)| json!({"value": from, "color": colour})).collect();
        let mode = if self.kind == Kind::TimeSeries && self.thresholds.len() == 1 {
            "palette-classic"
        } else {
            "thresholds"
        };
        let mut defaults = json!({
            "unit": self.unit.word(),
            "color": {"mode": if self.states.is_empty() { mode } else { "thresholds" }},
            "thresholds": {"mode": "absolute", "steps": steps},
            "mappings": self.mappings(),
            "noValue": "no data",
        });
        if self.kind == Kind::TimeSeries {
            // A gap is shown as one: absent is not zero.
            defaults["custom"] = json!({"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "spanNulls": false, "showPoints": "never"});
            defaults["min"] = json!(0);
        }
        if self.kind == Kind::StateTimeline {
            defaults["custom"] = json!({"fillOpacity": 80, "lineWidth": 0});
        }
        defaults
    }

    fn mappings(&self) -> Value {
        if self.states.is_empty() {
            return json!([]);
        }
        let option = |State(value, text, colour): &State| {
            (value.to_string(), json!({"text": text, "color": colour, "index": value}))
        };
        let options: serde_json::Map<String, Value> = self.states.iter().map(option).collect();
        json!([{"type": "value", "options": options}])
    }

    fn options(&self) -> Value {
        let reduce = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
        match self.kind {
            Kind::Stat => json!({
                "reduceOptions": reduce, "colorMode": "background", "graphMode": "none", "justifyMode": "auto",
                "orientation": "auto", "textMode": "auto"
            }),
            Kind::BarGauge => json!({
                "reduceOptions": reduce, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": true,
                "valueMode": "color"
            }),
            Kind::Table => json!({"cellHeight": "sm", "showHeader": true}),
            Kind::TimeSeries => json!({
                "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "showLegend": true},
                "tooltip": {"mode": "multi", "sort": "desc"}
            }),
            Kind::StateTimeline => json!({
                "mergeValues": true, "showValue": "auto", "alignValue": "left", "rowHeight": 0.9,
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
                "tooltip": {"mode": "single", "sort": "none"}
            }),
            Kind::Heatmap => json!({
                "calculate": false,
                "color": {"mode": "scheme", "scheme": "Cividis", "steps": 64, "reverse": false, "scale": "exponential", "exponent": 0.5,
                          "fill": "dark-blue"},
                "cellGap": 1, "filterValues": {"le": 1e-9},
                "rowsFrame": {"layout": "auto"},
                "yAxis": {"axisPlacement": "left", "unit": "s", "reverse": false},
                "legend": {"show": true}, "showValue": "never",
                "tooltip": {"mode": "single", "yHistogram": false, "showColorScale": false},
                "exemplars": {"color": "rgba(255,0,255,0.7)"}
            }),
        }
    }
}

/// The data source, by the variable that every dashboard has.
pub fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}
