BEGIN TRANSACTION;
CREATE TABLE temporaldp_ledger (
	id INTEGER NOT NULL CHECK (id = 1), 
	configuration TEXT NOT NULL, 
	n_steps INTEGER NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "temporaldp_ledger" VALUES(1,'{"alpha":1.0,"bound":"exact","correlations":{"salt":"e85bfa53006598bc2a2609b20fedbe42","users":["ccdd6175f8892e295cf850ef88dbc95e02f654f3b0b0be2b888bf988a84a03f9"]},"format":"temporaldp ledger 2","horizon":null,"mechanism":"DiscreteLaplaceHistogram(n_states=2)","neighboring_relation":"replace_one","plan":null,"reserve":null,"states":["0","1"],"step":null}',5,'d210f468dead44b39aa37586402f0aaec7e1f7269355b22d493f14d185fe30f2');
CREATE TABLE temporaldp_steps (
	step INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	parameter DOUBLE NOT NULL, 
	epsilon DOUBLE NOT NULL, 
	leakage DOUBLE, 
	last BOOLEAN NOT NULL, 
	output TEXT, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (step), 
	UNIQUE (time)
);
INSERT INTO "temporaldp_steps" VALUES(0,'0',2.59816254073010344249e-01,2.59816254073010344249e-01,2.59816254073166330584e-01,0,'{"array":[74,31],"dtype":"<i8","shape":[2]}','95e1ced15623a7238256ff2debd070133d2f7d1b9ba0f2c4b4164acb6e8c4316');
INSERT INTO "temporaldp_steps" VALUES(1,'1',2.59816254073010344249e-01,2.59816254073010344249e-01,4.15146506983718077687e-01,0,'{"array":[60,20],"dtype":"<i8","shape":[2]}','60ac91032af029f275dcc7f2acd592dbcb7099b584d3a65acf7544fd62bb2bd2');
INSERT INTO "temporaldp_steps" VALUES(2,'2',2.59816254073010344249e-01,2.59816254073010344249e-01,5.70476759894269824791e-01,0,'{"array":[86,15],"dtype":"<i8","shape":[2]}','313d4a624ebbecede3a19cfb430dad68da740f80bd30997804ee1529a6e20727');
INSERT INTO "temporaldp_steps" VALUES(3,'3',0.0,0.0,5.70476759894269824791e-01,0,NULL,'fa9803d79931aaee3e6da3ced1b3146362d7eddf267160697710ea78c89890b9');
INSERT INTO "temporaldp_steps" VALUES(4,'4',2.59816254073010344249e-01,2.59816254073010344249e-01,6.25484990920494587918e-01,0,'{"array":[73,42],"dtype":"<i8","shape":[2]}','d210f468dead44b39aa37586402f0aaec7e1f7269355b22d493f14d185fe30f2');
COMMIT;
